// Shortages: the pool's memory, file descriptors, room in the backlog, settings out of range. The caller gets
// a typed error, and existing connections continue.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "rdma/stream.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::StreamTest;

struct Limits : StreamTest {
  // A connect that may fail; returns its outcome.
  std::error_code try_connect(Stream& stream, const Endpoint& to, const StreamSettings& settings = {}) {
    std::optional<std::error_code> outcome;
    async_connect(stream, to, settings, [&](std::error_code e) { outcome = e; });
    run_until([&] { return outcome.has_value(); });
    return *outcome;
  }
  void expect_works(std::pair<Stream, Stream>& pair) {
    run_until([&] { return pair.first.try_write(asio::buffer("works", 5)) == 5; });
    run_until([&] { return pair.second.readable().size() == 5; });
    pair.second.consume(5);
  }
};

struct SmallPool : Limits {
  void SetUp() override {
    EngineSettings settings;
    settings.pool.max_bytes = 32 << 20;
    Result<Engine*> opened = Engine::open(io, testing_support::test_provider(), settings);
    ASSERT_TRUE(opened) << opened.error().what;
    engine = *opened;
  }
};

TEST_F(SmallPool, a_connection_beyond_the_pools_cap_fails_and_the_others_go_on) {
  Acceptor acceptor = listen();
  std::vector<std::pair<Stream, Stream>> pairs;
  pairs.push_back(connect_through(acceptor));
  std::vector<Stream> accepted;
  std::function<void()> accept = [&] {
    acceptor.async_accept([&](std::error_code failed, Stream stream) {
      if (failed) return;
      accepted.push_back(std::move(stream));
      accept();
    });
  };
  accept();

  std::vector<Stream> clients;
  std::error_code outcome;
  while (!outcome && clients.size() < 100) {
    clients.emplace_back(*engine);
    outcome = try_connect(clients.back(), acceptor.local_endpoint());
  }
  // On the client's side or the server's, whichever used the pool last.
  EXPECT_TRUE(outcome == Errc::memory_limit || outcome == Errc::refused) << outcome.message();
  EXPECT_GT(engine->stats().pool.refused, 0u);
  expect_works(pairs.front());

  clients.clear();
  run_until([&] {
    accepted.clear();  // one may be accepted after its client gave up
    return engine->stats().connections == 2;
  });
  Stream again(*engine);
  EXPECT_FALSE(try_connect(again, acceptor.local_endpoint())) << "what was freed can be had again";
  acceptor.close();
}

TEST_F(Limits, running_out_of_descriptors_fails_the_one_who_asked) {
  Acceptor acceptor = listen();
  auto pair = connect_through(acceptor);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none_left{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);

  std::error_code outcome;
  Stream stream(*engine);
  // A buffer size that no slab has needs a new slab, and with it a descriptor.
  outcome = try_connect(stream, acceptor.local_endpoint(), {.receive_buffer_bytes = 8 << 20});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);

  EXPECT_TRUE(outcome) << "no descriptor was to be had";
  EXPECT_FALSE(stream.error().what.empty());
  expect_works(pair);
  stream.close();
  EXPECT_FALSE(try_connect(stream, acceptor.local_endpoint(), {.receive_buffer_bytes = 8 << 20}));
}

TEST_F(Limits, a_full_backlog_refuses_and_then_has_room_again) {
  Acceptor acceptor = listen({}, 2);
  std::vector<Stream> clients;
  for (int i = 0; i < 3; ++i) clients.emplace_back(*engine);
  EXPECT_FALSE(try_connect(clients[0], acceptor.local_endpoint()));
  EXPECT_FALSE(try_connect(clients[1], acceptor.local_endpoint()));
  EXPECT_EQ(try_connect(clients[2], acceptor.local_endpoint()), Errc::refused);
  EXPECT_EQ(acceptor.rejected(), 1u);

  std::optional<Stream> taken;
  acceptor.async_accept([&](std::error_code failed, Stream stream) {
    ASSERT_FALSE(failed);
    taken.emplace(std::move(stream));
  });
  run_until([&] { return taken.has_value(); });
  clients[2].close();
  EXPECT_FALSE(try_connect(clients[2], acceptor.local_endpoint()));
}

TEST_F(Limits, settings_out_of_range_are_named) {
  struct Case {
    StreamSettings settings;
    const char* name;
  };
  const std::vector<Case> cases = {
      {{.receive_buffer_bytes = 0}, "receive_buffer_bytes"},
      {{.receive_buffer_bytes = 17 << 20}, "receive_buffer_bytes"},
      {{.send_buffer_bytes = 100}, "send_buffer_bytes"},
      {{.piece_bytes = 0}, "piece_bytes"},
      {{.receive_depth = 1}, "receive_depth"},
      {{.send_depth = 9000}, "send_depth"},
      {{.signal_interval = 0}, "signal_interval"},
      {{.send_depth = 16, .signal_interval = 9}, "signal_interval"},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const auto refused =
        Acceptor::listen(*engine, testing_support::test_address(), {.stream = each.settings});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::bad_setting);
    EXPECT_NE(refused.error().what.find(each.name), std::string::npos) << refused.error().what;
    Stream stream(*engine);
    EXPECT_EQ(try_connect(stream, testing_support::test_address(), each.settings), Errc::bad_setting);
    EXPECT_NE(stream.error().what.find(each.name), std::string::npos) << stream.error().what;
  }
}

TEST_F(Limits, a_taken_port_is_named) {
  Acceptor first = listen();
  const auto second = Acceptor::listen(*engine, first.local_endpoint());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::address_in_use) << second.error().what;
}

}  // namespace
}  // namespace weir::rdma
