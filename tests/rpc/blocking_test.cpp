// Functions that block: they run in separate threads, up to the limit, and no other functions do.
#include <asio/detached.hpp>
#include <asio/executor_work_guard.hpp>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "rpc/server/blocking_threads.hpp"
#include "rpc_fixture.hpp"

namespace slow {

// The test opens it, and so decides when the functions continue.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
    --inside_;
  }
  void open(bool on = true) {
    const std::lock_guard lock(mutex_);
    open_ = on;
    changed_.notify_all();
  }
  int inside() {
    const std::lock_guard lock(mutex_);
    return inside_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool open_ = false;
};
Gate gate;  // NOLINT: of functions, which have no object
std::atomic<int> ran = 0;

std::string find(std::string_view key) {
  gate.pass();
  ++ran;
  return "value of " + std::string(key);
}
weir::rpc::Result<std::int32_t> refuse(std::int32_t why) {
  if (why == 0) throw std::runtime_error("as asked");
  return weir::rpc::fail(weir::rpc::Errc::failed, "refused " + std::to_string(why));
}
std::int32_t quick(std::int32_t value) { return value; }

}  // namespace slow

template <>
inline constexpr bool weir::rpc::blocking<slow::find> = true;
template <>
inline constexpr bool weir::rpc::blocking<slow::refuse> = true;

namespace weir::rpc {
namespace {

using testing_support::RpcTest;
using namespace std::chrono_literals;

class RpcBlocking : public RpcTest {
 protected:
  void SetUp() override {
    RpcTest::SetUp();
    slow::gate.open(false);
    slow::ran = 0;
  }
  void TearDown() override {
    slow::gate.open();
    server.reset();
  }
  static ServerOptions few_threads(std::uint32_t threads, std::uint32_t waiting) {
    ServerOptions options;
    options.blocking = {threads, waiting};
    return options;
  }
  // Starts a call, whose outcome goes to `ends`.
  void begin(Client& client, std::string key, std::vector<Result<std::string>>& ends,
             std::chrono::microseconds timeout = {}) {
    auto call = [](Client& on, std::string wanted,
                   std::chrono::microseconds limit) -> asio::awaitable<Result<std::string>> {
      CallOptions options;
      options.timeout = limit;
      auto found = co_await on.call<slow::find>(options, wanted);
      co_return found;
    };
    asio::co_spawn(
        io, call(client, std::move(key), timeout),
        [&ends](const std::exception_ptr&, Result<std::string> end) { ends.push_back(std::move(end)); });
  }
  Result<Client> connected() {
    Result<Client> client = fail(Errc::closed, "");
    run([&]() -> asio::awaitable<void> {
      ConnectOptions options = connect_options();
      client = co_await connect(address, options);
    });
    return client;
  }
};
INSTANTIATE_TEST_SUITE_P(Transport, RpcBlocking, testing::Values("tcp", "rdma"),
                         testing_support::transport_name);

TEST_P(RpcBlocking, a_function_that_blocks_holds_up_nobody) {
  serve<slow::find, slow::quick>(few_threads(2, 8));
  auto client = connected();
  ASSERT_TRUE(client) << client.error().what;
  std::vector<Result<std::string>> ends;
  for (const char* key : {"a", "b", "c"}) begin(*client, key, ends);
  run_until([] { return slow::gate.inside() == 2; });
  run([&]() -> asio::awaitable<void> {
    const auto quick = co_await client->call<slow::quick>(7);
    EXPECT_EQ(quick.value_or(0), 7);
  });
  EXPECT_TRUE(ends.empty());
  EXPECT_EQ(slow::gate.inside(), 2);
  slow::gate.open();
  run_until([&] { return ends.size() == 3; });
  for (const auto& end : ends) EXPECT_TRUE(end && end->starts_with("value of "));
  EXPECT_EQ(slow::ran, 3);
}

TEST_P(RpcBlocking, more_than_may_wait_is_told_overloaded) {
  serve<slow::find>(few_threads(1, 2));
  auto client = connected();
  ASSERT_TRUE(client) << client.error().what;
  std::vector<Result<std::string>> ends;
  for (int i = 0; i < 5; ++i) begin(*client, std::to_string(i), ends);
  run_until([&] { return ends.size() == 2; });
  for (const auto& end : ends) {
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code, Errc::overloaded);
    EXPECT_NE(end.error().what.find("all 1 threads for functions that block are busy, and 2 calls wait"),
              std::string::npos)
        << end.error().what;
  }
  slow::gate.open();
  run_until([&] { return ends.size() == 5; });
  EXPECT_EQ(slow::ran, 3);
}

TEST_P(RpcBlocking, a_call_that_is_late_before_its_turn_never_runs) {
  serve<slow::find, slow::quick>(few_threads(1, 2));
  auto client = connected();
  ASSERT_TRUE(client) << client.error().what;
  std::vector<Result<std::string>> ends, late;
  begin(*client, "first", ends);
  run_until([] { return slow::gate.inside() == 1; });
  begin(*client, "second", late, 20ms);
  run_until([&] { return late.size() == 1; });
  EXPECT_EQ(late[0].error().code, Errc::deadline_exceeded);
  // The client has told the server that it no longer waits; a reply to its next request proves that the
  // server knows.
  run([&]() -> asio::awaitable<void> {
    const auto quick = co_await client->call<slow::quick>(7);
    EXPECT_EQ(quick.value_or(0), 7);
  });
  // Its place is free again, so two more wait.
  begin(*client, "third", ends);
  begin(*client, "fourth", ends);
  slow::gate.open();
  run_until([&] { return ends.size() == 3; });
  for (const auto& end : ends) EXPECT_TRUE(end) << end.error().what;
  EXPECT_EQ(slow::ran, 3);
}

TEST_P(RpcBlocking, what_the_function_throws_or_returns_is_the_answer) {
  ServerOptions options = few_threads(1, 1);
  options.exceptions_to_callers = true;
  serve<slow::refuse>(options);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto thrown = co_await client.call<slow::refuse>(0);
    EXPECT_EQ(thrown.error().what, "slow.refuse threw: as asked");
    const auto returned = co_await client.call<slow::refuse>(4);
    EXPECT_EQ(returned.error().what, "refused 4");
  });
}

TEST_P(RpcBlocking, a_server_that_goes_waits_for_what_runs) {
  serve<slow::find>(few_threads(1, 4));
  auto client = connected();
  ASSERT_TRUE(client) << client.error().what;
  std::vector<Result<std::string>> ends;
  begin(*client, "0", ends);
  run_until([] { return slow::gate.inside() == 1; });
  std::thread opener([] { slow::gate.open(); });
  server.reset();
  opener.join();
  EXPECT_EQ(slow::ran, 1);
  run_until([&] { return ends.size() == 1; });
}

TEST(BlockingThreads, that_stop_wait_for_what_runs_and_drop_what_waits) {
  asio::io_context io(1);
  BlockingThreads threads({1, 4});
  slow::gate.open(false);
  std::vector<Result<int>> ends;
  for (int i = 0; i < 3; ++i)
    asio::co_spawn(
        io,
        [&, i]() -> asio::awaitable<void> {
          auto work = [i] { return slow::gate.pass(), i; };
          const Result<int> ran = co_await threads.run(work);
          ends.push_back(ran);
        },
        asio::detached);
  io.poll();
  while (slow::gate.inside() == 0) std::this_thread::yield();
  const auto more = asio::make_work_guard(io);
  std::thread opener([&] {
    while (ends.size() < 2) io.run_one();
    slow::gate.open();
  });
  threads.stop();
  opener.join();
  while (ends.size() < 3) io.run_one();
  for (const std::size_t i : {0, 1}) {
    ASSERT_FALSE(ends[i]);
    EXPECT_EQ(ends[i].error().code, Errc::closed);
  }
  EXPECT_EQ(ends[2].value_or(-1), 0);
}

TEST(BlockingThreads, run_work_for_any_coroutine) {
  asio::io_context io(1);
  BlockingThreads threads({2, 2});
  const auto here = std::this_thread::get_id();
  int ended = 0;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        auto elsewhere = [here] { return std::this_thread::get_id() != here; };
        const Result<bool> ran = co_await threads.run(elsewhere);
        EXPECT_TRUE(ran.value_or(false));
        EXPECT_EQ(std::this_thread::get_id(), here);
        auto throws = []() -> int { throw std::runtime_error("x"); };
        bool caught = false;
        try {
          static_cast<void>(co_await threads.run(throws));
        } catch (const std::runtime_error&) {
          caught = true;
        }
        EXPECT_TRUE(caught);
        threads.stop();
        auto nothing = [] {};
        const Result<void> late = co_await threads.run(nothing);
        EXPECT_EQ(late.error().code, Errc::closed);
        ++ended;
      },
      [](const std::exception_ptr& thrown) {
        if (thrown) std::rethrow_exception(thrown);
      });
  io.run();
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace weir::rpc
