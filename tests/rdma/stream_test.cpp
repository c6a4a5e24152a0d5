// Streams over a real device, client and server in one process.
#include "rdma/stream.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/rdma/stream_pair.hpp"
#include "waiting/turn.hpp"

namespace weir::rdma {
namespace {

using testing_support::StreamTest;

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(StreamTest, carries_bytes_both_ways) {
  auto [client, server] = connect_pair();
  EXPECT_EQ(client.remote_endpoint(), server.local_endpoint());
  std::string got(5, ' '), answer(6, ' ');
  bool done = false;
  asio::async_write(client, asio::buffer("hello", 5),
                    [](std::error_code failed, std::size_t) { ASSERT_FALSE(failed); });
  asio::async_read(server, asio::buffer(got), [&](std::error_code failed, std::size_t) {
    ASSERT_FALSE(failed) << failed.message();
    asio::async_write(server, asio::buffer("world!", 6),
                      [](std::error_code e, std::size_t) { ASSERT_FALSE(e); });
  });
  asio::async_read(client, asio::buffer(answer), [&](std::error_code failed, std::size_t) {
    ASSERT_FALSE(failed) << failed.message();
    done = true;
  });
  run_until([&] { return done; });
  EXPECT_EQ(got, "hello");
  EXPECT_EQ(answer, "world!");
}

// Sends `total` bytes of a seeded sequence in random pieces, and checks what arrives against the same
// sequence.
class Talker {
 public:
  Talker(Stream& stream, std::uint32_t seed, std::size_t total, std::size_t largest)
      : stream_(stream), sizes_(seed), sent_bytes_(seed), left_(total), piece_(largest), got_(largest) {}

  void send() {
    if (left_ == 0) return;
    const std::size_t size = std::min<std::size_t>(left_, 1 + sizes_() % piece_.size());
    for (std::size_t i = 0; i < size; ++i) piece_[i] = static_cast<std::uint8_t>(sent_bytes_());
    left_ -= size;
    asio::async_write(stream_, asio::buffer(piece_.data(), size),
                      [this](std::error_code failed, std::size_t) {
                        ASSERT_FALSE(failed) << failed.message();
                        send();
                      });
  }
  void receive(std::uint32_t seed, std::size_t total) {
    expected_.seed(seed);
    expect_ = total;
    receive_some();
  }
  bool done() const { return left_ == 0 && expect_ == 0; }
  bool wrong() const { return wrong_; }

 private:
  void receive_some() {
    if (expect_ == 0) return;
    stream_.async_read_some(asio::buffer(got_.data(), 1 + sizes_() % got_.size()),
                            [this](std::error_code failed, std::size_t bytes) {
                              ASSERT_FALSE(failed) << failed.message();
                              ASSERT_GT(bytes, 0u);
                              for (std::size_t i = 0; i < bytes; ++i)
                                wrong_ |= got_[i] != static_cast<std::uint8_t>(expected_());
                              expect_ -= bytes;
                              receive_some();
                            });
  }

  Stream& stream_;
  std::mt19937 sizes_;
  std::minstd_rand sent_bytes_;
  std::minstd_rand expected_;
  std::size_t left_;
  std::size_t expect_ = 0;
  std::vector<std::uint8_t> piece_;
  std::vector<std::uint8_t> got_;
  bool wrong_ = false;
};

struct Shape {
  std::string name;
  std::size_t total, largest_write;
  StreamSettings settings;
};

struct RandomTraffic : StreamTest, testing::WithParamInterface<Shape> {};

TEST_P(RandomTraffic, arrives_whole_in_both_directions_at_once) {
  const auto& [name, total, largest, settings] = GetParam();
  const std::uint32_t seed = 20261;
  SCOPED_TRACE("seed " + std::to_string(seed));
  auto [client, server] = connect_pair(settings, settings);
  Talker a(client, seed, total, largest);
  Talker b(server, seed + 1, total, largest);
  a.send();
  b.send();
  a.receive(seed + 1, total);
  b.receive(seed, total);
  run_until([&] { return a.done() && b.done(); });
  EXPECT_FALSE(a.wrong());
  EXPECT_FALSE(b.wrong());
}

constexpr std::size_t kib = 1024;
INSTANTIATE_TEST_SUITE_P(
    Shapes, RandomTraffic,
    testing::Values(Shape{"defaults", 8 * kib* kib, 300 * kib, {}},
                    Shape{"small_buffers_wrap_and_reannounce",
                          4 * kib* kib,
                          200 * kib,
                          {.receive_buffer_bytes = 64 * kib, .send_buffer_bytes = 16 * kib}},
                    Shape{"odd_smallest_buffers",
                          256 * kib,
                          9 * kib,
                          {.receive_buffer_bytes = 4099, .send_buffer_bytes = 4096, .piece_bytes = 1024}},
                    Shape{"shallow_queues",
                          256 * kib,
                          100,
                          {.receive_depth = 16, .send_depth = 16, .signal_interval = 8}},
                    Shape{"every_write_signalled", 64 * kib, 50, {.signal_interval = 1}},
                    Shape{"nothing_inline", 256 * kib, 5000, {.send_buffer_bytes = 8192, .inline_bytes = 0}}),
    [](const auto& each) { return each.param.name; });

TEST_F(StreamTest, announces_little_for_small_writes_and_much_for_large_ones) {
  struct Case {
    const char* name;
    std::size_t write_bytes;
    std::uint64_t fewest, most;  // limits for the number of announcements in 8 MiB
  };
  for (const Case& each :
       {Case{"small", kib, 8192 / 64, 8192 / 64 + 1}, Case{"large", 512 * kib, 8, 8 + 3}}) {
    SCOPED_TRACE(each.name);
    auto [client, server] = connect_pair();
    const std::vector<char> data(each.write_bytes);
    for (std::size_t sent = 0; sent < 8192 * kib; sent += data.size()) {
      std::size_t written = 0;
      run_until([&, &from = client, &to = server] {
        to.consume(to.readable().size());
        written += from.try_write(asio::buffer(data.data() + written, data.size() - written));
        return written == data.size();
      });
    }
    run_until([&, &to = server] {
      to.consume(to.readable().size());
      return to.stats().bytes_received == 8192 * kib;
    });
    EXPECT_GE(server.stats().announcements, each.fewest);
    EXPECT_LE(server.stats().announcements, each.most);
  }
}

TEST_F(StreamTest, reads_what_was_sent_before_the_close_and_then_eof) {
  auto [client, server] = connect_pair();
  run_until([&] { return client.try_write(asio::buffer("last words", 10)) == 10; });
  client.close();
  std::string got;
  asio::async_read(server, asio::dynamic_buffer(got), [&](std::error_code failed, std::size_t bytes) {
    EXPECT_EQ(failed, asio::error::eof);
    EXPECT_EQ(bytes, 10u);
  });
  run_until([&] { return static_cast<bool>(server.end()); });
  io.poll();
  EXPECT_EQ(got, "last words");
}

TEST_F(StreamTest, run_returns_when_the_last_stream_closes) {
  {
    auto [client, server] = connect_pair();
    client.close();
    run_until([&] { return static_cast<bool>(server.end()); });
  }
  io.restart();
  io.run();
  EXPECT_EQ(engine->stats().connections, 0u);
  EXPECT_EQ(engine->stats().pool.used_bytes, 0u);
}

TEST_F(StreamTest, fast_path_serves_without_async_operations) {
  auto [client, server] = connect_pair();
  std::string heard;
  server.on_readable([&, &peer = server] {
    heard += as_text(peer.readable());
    peer.consume(peer.readable().size());
    peer.try_write(asio::buffer("pong", 4));
  });
  int pongs = 0;
  client.on_readable([&, &peer = client] {
    ASSERT_EQ(as_text(peer.readable()), "pong");
    peer.consume(4);
    if (++pongs < 1000) peer.try_write(asio::buffer("ping", 4));
  });
  run_until([&] { return client.try_write(asio::buffer("ping", 4)) == 4; });
  run_until([&] { return pongs == 1000; });
  EXPECT_EQ(heard.size(), 4000u);
}

TEST_F(StreamTest, a_callback_may_install_its_successor_and_close_its_stream) {
  auto [client, server] = connect_pair();
  std::string heard;
  server.on_readable([&, &peer = server] {
    heard += "first ";
    peer.consume(peer.readable().size());
    peer.on_readable([&] {
      heard += "second";
      peer.close();
    });
  });
  run_until([&] { return client.try_write(asio::buffer("a", 1)) == 1; });
  run_until([&] { return heard == "first "; });
  client.try_write(asio::buffer("b", 1));
  run_until([&] { return static_cast<bool>(client.end()); });
  EXPECT_EQ(heard, "first second");
}

TEST_F(StreamTest, an_exception_from_a_callback_leaves_run_and_the_engine_goes_on) {
  auto [client, server] = connect_pair();
  server.on_readable([&, &peer = server] {
    peer.consume(peer.readable().size());
    throw std::logic_error("from the callback");
  });
  run_until([&] { return client.try_write(asio::buffer("a", 1)) == 1; });
  EXPECT_THROW(run_until([] { return false; }), std::logic_error);

  bool heard = false;
  server.on_readable([&] { heard = true; });
  client.try_write(asio::buffer("b", 1));
  run_until([&] { return heard; });
}

TEST_F(StreamTest, writable_callback_runs_when_a_stalled_writer_can_go_on) {
  const StreamSettings small{.receive_buffer_bytes = 4096, .send_buffer_bytes = 4096};
  auto [client, server] = connect_pair(small, small);
  const std::vector<char> much(100'000, 'x');
  std::size_t sent = 0, got = 0;
  client.on_writable([&, &writer = client] {
    sent += writer.try_write(asio::buffer(much.data() + sent, much.size() - sent));
  });
  sent += client.try_write(asio::buffer(much));
  run_until([&] { return sent >= 8192; });  // both of the reader's buffers are now full
  EXPECT_LT(sent, much.size());
  server.on_readable([&, &reader = server] {
    while (!reader.readable().empty()) {
      got += reader.readable().size();
      reader.consume(reader.readable().size());
    }
  });
  run_until([&] { return got == much.size(); });
  EXPECT_EQ(sent, much.size());
}

TEST_F(StreamTest, both_sides_stalled_on_output_still_take_input) {
  const StreamSettings small{.receive_buffer_bytes = 4096, .send_buffer_bytes = 4096};
  auto [client, server] = connect_pair(small, small);
  const std::vector<char> much(64 * kib, 'x');
  struct End {
    Stream* stream;
    std::size_t sent = 0, got = 0;
  } ends[2] = {{&client}, {&server}};
  for (End& end : ends) {
    const auto pump = [&end, &much] {
      end.got += end.stream->readable().size();
      end.stream->consume(end.stream->readable().size());
      end.sent += end.stream->try_write(asio::buffer(much.data() + end.sent, much.size() - end.sent));
    };
    end.stream->on_readable(pump);
    end.stream->on_writable(pump);
    pump();
  }
  run_until([&] { return ends[0].got == much.size() && ends[1].got == much.size(); });
}

TEST_F(StreamTest, cancel_ends_waiting_operations) {
  auto [client, server] = connect_pair();
  char byte = 0;
  std::error_code read_result;
  client.async_read_some(asio::buffer(&byte, 1), [&](std::error_code e, std::size_t) { read_result = e; });
  client.cancel();
  run_until([&] { return static_cast<bool>(read_result); });
  EXPECT_EQ(read_result, asio::error::operation_aborted);
}

TEST_F(StreamTest, empty_transfers_complete_and_send_nothing) {
  auto [client, server] = connect_pair();
  int done = 0;
  client.async_write_some(asio::const_buffer(),
                          [&](std::error_code e, std::size_t n) { done += !e && n == 0; });
  client.async_read_some(asio::mutable_buffer(),
                         [&](std::error_code e, std::size_t n) { done += !e && n == 0; });
  run_until([&] { return done == 2; });
  EXPECT_EQ(client.stats().writes, 0u);
}

TEST_F(StreamTest, connect_to_nobody_is_refused) {
  Endpoint nobody;
  {
    Acceptor acceptor = listen();
    nobody = acceptor.local_endpoint();
  }
  Stream client(*engine);
  std::error_code result;
  async_connect(client, nobody, {}, [&](std::error_code e) { result = e; });
  run_until([&] { return static_cast<bool>(result); });
  EXPECT_EQ(result, Errc::refused) << client.error().what;
}

TEST_F(StreamTest, survives_a_thousand_connects_and_closes) {
  Acceptor acceptor = listen({.receive_depth = 64, .send_depth = 64, .signal_interval = 32});
  const StreamSettings settings{.receive_depth = 64, .send_depth = 64, .signal_interval = 32};
  for (int i = 0; i < 1000; ++i) {
    auto [client, server] = connect_through(acceptor, settings);
    if (i % 2 == 0) client.close();
  }
  acceptor.close();
  run_until([&] { return engine->stats().connections == 0; });
  EXPECT_EQ(engine->stats().connections_made, 2000u);
  EXPECT_EQ(engine->stats().pool.used_bytes, 0u);
}

TEST_F(StreamTest, keepalives_flow_unseen) {
  auto [client, server] = connect_pair({}, {.keepalive = std::chrono::milliseconds(5)});
  const std::uint64_t before = engine->stats().completions;
  // A keepalive causes two completions, the server's send and the client's receive.
  run_until([&] { return engine->stats().completions >= before + 20; });
  EXPECT_FALSE(client.end());
  EXPECT_TRUE(client.readable().empty());
}

// A reader that leaves bytes for later asks to be notified again.
TEST_F(StreamTest, others_have_their_turn_after_a_reader_that_took_long) {
  auto [client, server] = connect_pair();
  int told = 0;
  std::function<void()> read_slowly = [&, &stream = server] {
    ++told;
    const auto until = std::chrono::steady_clock::now() + 2 * waiting::Turn::length;
    while (std::chrono::steady_clock::now() < until) {
    }
    stream.on_readable(read_slowly);
  };
  server.on_readable(read_slowly);
  run_until([&, &stream = client] { return stream.try_write(asio::buffer("more than is read", 10)) > 0; });
  run_until([&] { return told > 0; });
  for (int i = 0; i < 5; ++i) {
    const int before = told;
    io.run_one();
    EXPECT_LE(told - before, 2) << "the reader was told again while other handlers waited";
  }
  server.on_readable(nullptr);
}

}  // namespace
}  // namespace weir::rdma
