// More than an end can handle: memory stays within the limits, every call ends, and afterwards everything is
// as before.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <asio/detached.hpp>
#include <cstdio>
#include <random>

#include "tests/rpc/rpc_fixture.hpp"

namespace flood {

std::uint64_t produced = 0;  // bytes of results so far

std::string result(std::uint32_t bytes) {
  produced += bytes;
  return std::string(bytes, 'x');
}

std::uint64_t length(std::string_view text) { return text.size(); }

bool held = false;
asio::awaitable<void> hold() {
  while (held) co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
}

}  // namespace flood

namespace weir::rpc {
namespace {

class Overload : public testing_support::RpcTest {
 protected:
  void start(const ServerLimits& limits = {}) {
    serve<flood::result, shop::nothing, shop::wait_for_ever>(limited(limits));
    shop::waits = {};
    flood::produced = 0;
  }
  // Until no function has run for ten rounds. Rounds, because on a busy machine time passes without us.
  void run_until_quiet() {
    std::uint64_t before = flood::produced;
    for (int quiet = 0; quiet < 10; ++quiet) {
      io.run_for(std::chrono::milliseconds(20));
      if (flood::produced != std::exchange(before, flood::produced)) quiet = 0;
    }
  }
  // A client in its own io_context, which the test can stop so that nothing there is read.
  Client connect_in(asio::io_context& reader) {
    ConnectOptions options = connect_options();
    if (over("rdma")) {
      auto opened = rdma::Engine::open(reader, rdma::testing_support::test_provider());
      if (!opened) throw std::runtime_error(opened.error().what);
      options.transport.engine = *opened;
    }
    std::optional<Client> client;
    const auto dial = [&]() -> asio::awaitable<void> {
      auto made = co_await connect(address, options);
      if (made) client.emplace(std::move(*made));
    };
    asio::co_spawn(reader, dial(), asio::detached);
    run_both_until(reader, [&] { return client.has_value(); });
    return std::move(*client);
  }
  // Runs both ends by turns.
  void run_both_until(asio::io_context& other, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done()) {
      for (asio::io_context* one : {&io, &other}) {
        if (one->stopped()) one->restart();
        one->poll();
      }
      if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("nothing happened in time");
    }
  }
};

TEST_P(Overload, a_client_that_does_not_read_costs_its_server_the_limit_and_no_more) {
  constexpr std::uint32_t reply_bytes = 64 << 10;
  constexpr int calls = 2000;  // 125 MiB of results, requested by what fits into one read
  ServerLimits limits;
  limits.max_waiting_bytes = 1 << 20;
  start(limits);
  asio::io_context reader(1);
  int ended = 0, good = 0;
  {
    Client client = connect_in(reader);
    for (int i = 0; i < calls; ++i)
      asio::co_spawn(reader, client.call<flood::result>(reply_bytes),
                     [&](const std::exception_ptr&, const Result<std::string>& result) {
                       ++ended;
                       good += result && result->size() == reply_bytes ? 1 : 0;
                     });
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    reader.restart();
    for (int i = 0; i < 10'000 && reader.poll_one() > 0 && ended == 0;) ++i;
    const int ended_early = ended;
    run_until_quiet();
    const std::size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    const std::size_t grown = after > before ? after - before : 0;
    std::printf("%d calls asked for %.0f MiB; of %.1f MiB that functions made, the process held %.1f MiB\n",
                calls, double{calls} * reply_bytes / (1 << 20),
                static_cast<double>(flood::produced) / (1 << 20), static_cast<double>(grown) / (1 << 20));
    EXPECT_LT(ended_early, calls);
    EXPECT_LT(flood::produced, std::uint64_t{calls} * reply_bytes / 2);
    // What the transport and the kernel hold is not the server's; its queue grows by doubling.
    EXPECT_LT(grown, 12u << 20);
    run_both_until(reader, [&] { return ended == calls; });
    EXPECT_EQ(good, calls);
    client.close();
    reader.restart();
    reader.poll();
  }
  run_both_until(reader, [&] { return server->open() == 0; });
}

// On the wire they are a thousandth of that, and stay so until it is their turn.
TEST_P(Overload, compressed_requests_that_wait_for_their_turn_do_not_cost_what_they_will_be) {
  constexpr std::size_t body_bytes = (4 << 20) - 64;
  constexpr int calls = 64;
  ServerOptions chosen;
  chosen.limits.max_in_flight = 1;
  chosen.compression.with = Compression::zstd;
  serve<flood::length, flood::hold, shop::nothing>(std::move(chosen));
  flood::held = true;
  run([&]() -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    ConnectOptions options = connect_options();
    options.compression.with = Compression::zstd;
    auto client = co_await connect(address, options);
    if (!client) throw std::runtime_error(client.error().what);
    EXPECT_TRUE(co_await client->call<shop::nothing>());
    const std::string body(body_bytes, 'x');
    int ended = 0, good = 0;
    asio::co_spawn(executor, client->call<flood::hold>(), asio::detached);
    const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int i = 0; i < calls; ++i)
      asio::co_spawn(executor, client->call<flood::length>(body),
                     [&](const std::exception_ptr&, const Result<std::uint64_t>& result) {
                       ++ended;
                       good += result.value_or(0) == body_bytes ? 1 : 0;
                     });
    for (int i = 0; i < 10'000; ++i) co_await asio::post(executor, asio::use_awaitable);
    const std::size_t after = mallinfo2().uordblks + mallinfo2().hblkhd;
    std::printf("%d calls of %zu MiB wait: %.1f MiB more\n", calls, body_bytes >> 20,
                (static_cast<double>(after) - static_cast<double>(before)) / (1 << 20));
    EXPECT_LT(after, before + (64u << 20));
    EXPECT_EQ(ended, 0);
    flood::held = false;
    while (ended < calls) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(good, calls);
  });
}

TEST_P(Overload, a_client_that_leaves_before_its_replies_is_forgotten) {
  ServerLimits limits;
  limits.max_waiting_bytes = 1 << 20;
  start(limits);
  asio::io_context reader(1);
  {
    Client client = connect_in(reader);
    for (int i = 0; i < 64; ++i) asio::co_spawn(reader, client.call<flood::result>(1u << 20), asio::detached);
    for (int i = 0; i < 10'000 && reader.poll_one() > 0;) ++i;
    run_until_quiet();
    EXPECT_LT(flood::produced, 64u << 20) << "replies wait, so the server stopped reading";
    client.close();
  }
  run_both_until(reader, [&] { return server->open() == 0; });
}

TEST_P(Overload, a_storm_of_deadlines_ends_every_call_and_cancels_every_function) {
  start();
  constexpr int calls = 3000;  // more than the server runs at once
  std::mt19937 random(7);
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    int ended = 0, late = 0;
    for (int i = 0; i < calls; ++i) {
      CallOptions options;
      options.timeout = std::chrono::microseconds(1 + random() % 20'000);
      asio::co_spawn(executor, client.call<shop::wait_for_ever>(options),
                     [&](const std::exception_ptr&, const Result<void>& result) {
                       ++ended;
                       late += !result && result.error().code == Errc::deadline_exceeded ? 1 : 0;
                     });
    }
    while (ended < calls) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(late, calls);
    EXPECT_EQ(client.in_flight(), 0u);
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
  run_until([this] { return server->open() == 0 && shop::waits.cancelled == shop::waits.started; });
  EXPECT_GT(shop::waits.started, 0);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class Churn : public Overload {
 protected:
  // Clients come and go in every way: at once, after a call, and during a call.
  void come_and_go(int times) {
    start();
    std::mt19937 random(11);
    const auto one = [&]() -> asio::awaitable<void> {
      ConnectOptions options = connect_options();
      auto client = co_await connect(address, options);
      EXPECT_TRUE(client) << client.error().what;
      if (!client) co_return;
      const auto way = random() % 4;
      if (way == 1) {
        EXPECT_TRUE(co_await client->call<shop::nothing>());
      } else if (way == 2) {
        asio::co_spawn(io, client->call<shop::wait_for_ever>(),
                       [](const std::exception_ptr&, const Result<void>& result) {
                         EXPECT_EQ(result.error().code, Errc::closed);
                       });
      } else if (way == 3) {
        EXPECT_TRUE(co_await client->call<shop::nothing>());
        client->close();
        EXPECT_EQ((co_await client->call<shop::nothing>()).error().code, Errc::closed);
      }
    };
    const auto some = [&](int count) {
      int left = 0;
      for (int begun = 0; begun < count || left > 0;) {
        for (; begun < count && left < 8; ++begun, ++left)
          asio::co_spawn(io, one(), [&](const std::exception_ptr& thrown) {
            --left;
            if (thrown) std::rethrow_exception(thrown);
          });
        run_until([&] { return left < 8; });
        if (begun == count) run_until([&] { return left == 0; });
      }
      run_until([&] { return server->open() == 0 && shop::waits.cancelled == shop::waits.started; });
    };
    some(50);  // files that are opened once and kept
    const std::size_t descriptors = open_descriptors();
    some(times);
    EXPECT_LT(open_descriptors(), descriptors + 10) << "descriptors leak";
  }
};

TEST_P(Churn, hundreds_of_clients_come_and_go) { come_and_go(300); }
// Label slow.
TEST_P(Churn, slow_thousands_of_clients_come_and_go) { come_and_go(5000); }

TEST_P(Overload, who_comes_when_all_connections_are_taken_is_told_so) {
  ServerLimits limits;
  limits.max_connections = 1;
  start(limits);
  with_client(address, [this](Client& first) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await first.call<shop::nothing>());
    ConnectOptions options = connect_options();
    auto second = co_await connect(address, options);
    EXPECT_TRUE(second);
    const auto refused = co_await second->call<shop::nothing>();
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::overloaded) << refused.error().what;
    EXPECT_TRUE(did_not_run(refused.error().code));
    EXPECT_TRUE(co_await first.call<shop::nothing>()) << "who is served does not notice";
    EXPECT_EQ(server->open(), 1u);
  });
  run_until([this] { return server->open() == 0; });
  EXPECT_EQ(server->stats().refused, 1u);
}

class Crowd : public Overload {};

// Both ends are in this process, with two descriptors a connection, so a little less than 10,000 if the hard
// limit is 20,000.
TEST_P(Crowd, slow_ten_thousand_connections_are_served) {
  constexpr std::size_t least = 9'000, most = 10'000;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (files.rlim_cur < 2 * least + 100)
    GTEST_SKIP() << most << " connections need " << 2 * most + 100 << " descriptors, and the hard limit is "
                 << files.rlim_cur << ": raise it with ulimit -Hn";
  const std::size_t count = std::min(most, (files.rlim_cur - 100) / 2);
  ServerLimits limits;
  limits.max_connections = most;
  start(limits);
  std::vector<Client> clients;
  clients.reserve(count);
  const std::size_t before = mallinfo2().uordblks;
  run([&]() -> asio::awaitable<void> {
    for (std::size_t i = 0; i < count; ++i) {
      ConnectOptions options = connect_options();
      auto client = co_await connect(address, options);
      if (!client) throw std::runtime_error(client.error().what);
      clients.push_back(std::move(*client));
      const auto answered = co_await clients.back().call<shop::nothing>();
      EXPECT_TRUE(answered);
    }
  });
  EXPECT_EQ(server->open(), count);
  const std::size_t each = (mallinfo2().uordblks - before) / count;
  std::printf("%zu connections: %zu bytes of heap each, both ends together\n", count, each);
  EXPECT_LT(each, 16u << 10);
  int good = 0;
  for (Client& client : clients)
    asio::co_spawn(io, client.call<shop::nothing>(),
                   [&](const std::exception_ptr&, const Result<void>& result) { good += result ? 1 : 0; });
  run_until([&] { return good == static_cast<int>(count); });
  clients.clear();
  run_until([this] { return server->open() == 0; });
}

INSTANTIATE_TEST_SUITE_P(Over, Overload, testing_support::transports, testing_support::transport_name);
INSTANTIATE_TEST_SUITE_P(Over, Churn, testing_support::transports, testing_support::transport_name);
// Over RDMA a connection takes megabytes of buffers at each end.
INSTANTIATE_TEST_SUITE_P(Over, Crowd, testing::Values("tcp", "unix"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
