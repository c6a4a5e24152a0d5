// A server with several threads: which thread runs what, and that nothing is torn between them.
// ThreadSanitizer runs these tests.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "tests/rpc/rpc_fixture.hpp"

#ifdef __SANITIZE_THREAD__
// OpenSSL is not compiled for ThreadSanitizer, which therefore does not see the atomics that publish
// certificates shared by the threads' handshakes.
extern "C" [[gnu::visibility("default")]] const char* __tsan_default_suppressions() {
  return "called_from_lib:libcrypto.so.3\ncalled_from_lib:libssl.so.3\n";
}
#endif

namespace crowd {

// Which threads ran something, and whether two ever ran at once for one connection.
struct Seen {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> waiting{0};
  std::atomic<int> cancelled{0};
  void note() {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return threads.size();
  }
};
Seen* seen = nullptr;

std::uint32_t next(std::uint32_t number) {
  seen->note();
  return number + 1;
}
asio::awaitable<std::uint32_t> next_later(std::uint32_t number) {
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  co_return next(number);
}
asio::awaitable<std::uint64_t> total(weir::rpc::Reader<std::uint32_t> in) {
  std::uint64_t sum = 0;
  while (auto number = co_await in.read()) sum += *number;
  seen->note();
  co_return sum;
}
asio::awaitable<void> hang() {
  asio::steady_timer timer(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
  ++seen->waiting;
  try {
    co_await timer.async_wait(asio::use_awaitable);
  } catch (const std::system_error&) {
    ++seen->cancelled;
    throw;
  }
}
// Ends only with its io_context.
asio::awaitable<void> stubborn() {
  co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
  co_await hang();
}

}  // namespace crowd

namespace weir::rpc {
namespace {

constexpr int connections = 8;

class Threads : public testing_support::RpcTest {
 protected:
  crowd::Seen seen;
  void SetUp() override {
    RpcTest::SetUp();
    crowd::seen = &seen;
  }
  void start(std::uint32_t threads, ServerOptions options = {}) {
    options.threads = threads;
    serve<crowd::next, crowd::next_later, crowd::total, crowd::hang, crowd::stubborn>(std::move(options));
  }

  // `body` runs with each of several clients at once.
  void with_clients(const std::function<asio::awaitable<void>(Client&)>& body) {
    int left = connections;
    const auto one = [&]() -> asio::awaitable<void> {
      ConnectOptions options = connect_options();
      auto client = co_await connect(address, options);
      if (!client) throw std::runtime_error(client.error().what);
      co_await body(*client);
    };
    for (int i = 0; i < connections; ++i)
      asio::co_spawn(io, one(), [&](const std::exception_ptr& thrown) {
        --left;
        if (thrown) std::rethrow_exception(thrown);
      });
    run_until([&] { return left == 0; });
  }
  static asio::awaitable<void> many_calls(Client& client) {
    for (std::uint32_t i = 0; i < 50; ++i) {
      EXPECT_EQ((co_await client.call<crowd::next>(i)).value_or(0), i + 1);
      EXPECT_EQ((co_await client.call<crowd::next_later>(i)).value_or(0), i + 1);
    }
    auto total = client.stream<crowd::total>();
    for (std::uint32_t i = 0; i < 100; ++i)
      if (const auto written = co_await total.write(i); !written) break;
    const auto sum = co_await total.finish();
    EXPECT_EQ(sum.value_or(0), 4950u);
  }
};

TEST_P(Threads, functions_run_in_as_many_threads_as_were_asked_for) {
  for (const std::uint32_t asked : {1u, 2u, 4u}) {
    seen.threads.clear();
    start(asked);
    with_clients(many_calls);
    EXPECT_EQ(seen.count(), asked);
    EXPECT_EQ(server->stats().connections, static_cast<std::uint64_t>(connections));
    run_until([this] { return server->open() == 0; });
  }
}

TEST_P(Threads, a_number_that_cannot_be_is_an_error_that_says_what_can) {
  for (const std::uint32_t asked : {0u, 257u, 1000u}) {
    ServerOptions options;
    options.threads = asked;
    const auto refused = make_server(options)->listen("unix://" + folder.file("never"));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::bad_setting);
    EXPECT_EQ(refused.error().what, "threads is " + std::to_string(asked) + ", allowed are 1 to 256");
  }
}

TEST_P(Threads, counts_of_all_threads_are_told_as_one) {
  ServerOptions options;
  options.stats = true;
  start(3, std::move(options));
  with_clients(many_calls);
  std::uint64_t calls = 0;
  for (const MethodReport& report : server->method_stats())
    if (report.name == "crowd::next" || report.name == "crowd.next") calls = report.calls;
  EXPECT_EQ(calls, 50u * connections);
}

TEST_P(Threads, authentication_and_interceptors_run_beside_each_other) {
  struct Counter final : ServerInterceptor {
    std::atomic<int> calls{0};
    Result<void> before(Context&) override {
      ++calls;
      return {};
    }
  };
  std::atomic<int> checked{0};
  const auto counter = std::make_shared<Counter>();
  ServerOptions options;
  options.interceptors = {counter};
  options.authentication.authenticate = [&](const Credentials&) -> Result<Identity> {
    ++checked;
    return Identity{"anybody"};
  };
  start(4, std::move(options));
  with_clients(many_calls);
  EXPECT_EQ(checked.load(), connections);
  EXPECT_EQ(counter->calls.load(), 101 * connections);
}

TEST_P(Threads, a_limit_of_connections_holds_for_all_threads_together) {
  ServerOptions options;
  options.limits.max_connections = connections - 2;
  start(4, std::move(options));
  int served = 0, refused = 0;
  std::vector<Client> kept;
  with_clients([&](Client& client) -> asio::awaitable<void> {
    const auto answer = co_await client.call<crowd::next>(1u);
    (answer ? served : refused) += 1;
    kept.push_back(std::move(client));
  });
  // A client that was about to call may leave for one that comes, after its answer.
  EXPECT_EQ(served + refused, connections);
  EXPECT_GE(served, connections - 2);
  run_until([this] { return server->open() <= connections - 2; });
}

TEST_P(Threads, draining_and_stopping_reach_every_thread) {
  start(4);
  std::vector<Client> kept;
  with_clients([&](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<crowd::next>(1u));
    kept.push_back(std::move(client));
  });
  EXPECT_EQ(server->open(), static_cast<std::uint32_t>(connections));
  server->drain();
  run_until([&] { return std::ranges::all_of(kept, [](const Client& one) { return !one.is_open(); }); });
  run_until([&] { return server->open() == 0; });
  start(4);
  kept.clear();
  with_clients([&](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<crowd::next>(1u));
    kept.push_back(std::move(client));
  });
  server->stop();
  run_until([&] { return server->open() == 0; });
  run_until([&] { return std::ranges::none_of(kept, [](const Client& one) { return one.is_open(); }); });
}

TEST_P(Threads, a_server_that_goes_cancels_what_runs_and_waits_for_nobody_who_awaits) {
  start(4);
  int ended = 0;
  std::vector<std::shared_ptr<Client>> kept;
  with_clients([&](Client& client) -> asio::awaitable<void> {
    const auto shared = std::make_shared<Client>(std::move(client));
    kept.push_back(shared);
    const auto count = [&ended, shared](const std::exception_ptr&, const Result<void>& result) {
      EXPECT_FALSE(result);
      ++ended;
    };
    asio::co_spawn(io, shared->call<crowd::hang>(), count);
    asio::co_spawn(io, shared->call<crowd::stubborn>(), count);
    co_return;
  });
  run_until([this] { return seen.waiting == 2 * connections; });
  server.reset();
  run_until([&] { return ended == 2 * connections; });
  EXPECT_GE(seen.cancelled.load(), connections - connections / 4);  // those of the io_context come later
  run_until([this] { return seen.cancelled >= connections; });
}

INSTANTIATE_TEST_SUITE_P(Over, Threads, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
