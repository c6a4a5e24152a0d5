// Two processes: data between them, and a peer that is killed during a write or while it is idle.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "rdma/stream.hpp"
#include "tests/rdma/child_process.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::Child;
using testing_support::StreamTest;

struct ProcessTest : StreamTest {
  std::optional<Acceptor> acceptor;
  std::optional<Stream> stream;

  void serve(Child&) {
    acceptor->async_accept([this](std::error_code failed, Stream accepted) {
      ASSERT_FALSE(failed) << failed.message();
      stream.emplace(std::move(accepted));
    });
    run_until([&] { return stream.has_value(); });
  }
  void SetUp() override {
    StreamTest::SetUp();
    acceptor.emplace(listen());
  }
  void TearDown() override {
    stream.reset();
    acceptor.reset();
  }
};

TEST_F(ProcessTest, talks_to_another_process) {
  Child child(acceptor->local_endpoint(), "echo");
  serve(child);
  std::string sent(500'000, '\0'), got;
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 251);
  std::size_t taken = 0;
  const auto write_more = [&] {
    taken += stream->try_write(asio::buffer(sent.data() + taken, sent.size() - taken));
  };
  stream->on_writable(write_more);
  stream->on_readable([&] {
    const auto bytes = stream->readable();
    got.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    stream->consume(bytes.size());
  });
  write_more();
  run_until([&] { return got.size() >= sent.size(); });
  EXPECT_EQ(got, sent);
}

TEST_F(ProcessTest, a_peer_killed_in_the_middle_of_a_write_ends_the_stream) {
  Child child(acceptor->local_endpoint(), "flood");
  serve(child);
  std::size_t got = 0;
  stream->on_readable([&] {
    got += stream->readable().size();
    stream->consume(stream->readable().size());
  });
  run_until([&] { return got > 1'000'000; });
  child.kill_now();
  run_until([&] {
    stream->consume(stream->readable().size());
    return static_cast<bool>(stream->end());
  });
  EXPECT_FALSE(stream->error().what.empty());

  // The other connection is unaffected.
  auto [client, server] = connect_through(*acceptor);
  run_until([&, &c = client] { return c.try_write(asio::buffer("fine", 4)) == 4; });
  run_until([&, &s = server] { return s.readable().size() == 4; });
}

TEST_F(ProcessTest, an_idle_peer_killed_ends_the_stream) {
  Child child(acceptor->local_endpoint(), "idle");
  serve(child);
  bool told = false;
  stream->on_readable([&] { told = static_cast<bool>(stream->end()); });
  child.kill_now();
  run_until([&] { return told; });
}

TEST_F(ProcessTest, a_peer_killed_while_we_write_to_it_ends_the_stream) {
  Child child(acceptor->local_endpoint(), "idle");
  serve(child);
  const std::vector<char> data(100'000, 'x');
  const auto flood = [&] {
    while (stream->try_write(asio::buffer(data)) > 0) {
    }
  };
  stream->on_writable(flood);
  flood();
  run_until([&] { return stream->stats().bytes_sent > 0; });
  child.kill_now();
  run_until([&] { return static_cast<bool>(stream->end()); });
}

}  // namespace
}  // namespace weir::rdma
