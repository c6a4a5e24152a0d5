// Clients against servers that are killed and restarted at random.
//
// Every operation has a number, which the server that runs it writes to its journal before it answers. An
// operation is sent again if its last try certainly did not run, or if it is idempotent; any other end is
// final. At the end the journals show whether the clients were told the truth:
//   - an acknowledged operation ran;
//   - an operation that is not idempotent never ran twice;
//   - an operation whose every try certainly did not run, did not run.
// The seed decides which server is killed and when, by the number of answered calls;
// WEIR_CHAOS_SEED repeats a run.
#include <asio/redirect_error.hpp>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "tests/rpc/chaos/journal.hpp"
#include "tests/rpc/chaos/server_process.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using testing_support::RpcTest;

struct Operation {
  bool idempotent = false;
  bool acknowledged = false;
  bool perhaps_ran = false;  // a try ended without saying whether it ran
};

struct Plan {
  unsigned servers = 3;
  unsigned clients = 6;
  unsigned at_once = 4;  // calls in flight on each connection
  unsigned kills = 0;
};

class Chaos {
 public:
  Chaos(asio::io_context& io, const Plan& plan, std::uint64_t seed, ConnectOptions options)
      : io_(io), plan_(plan), kill_random_(seed), random_(seed + 1), options_(std::move(options)) {}

  void add_server(std::string where, std::string journal) {
    servers_.push_back(std::make_unique<chaos::ServerProcess>(io_, std::move(where), std::move(journal)));
  }

  asio::awaitable<void> run() {
    for (const auto& server : servers_) co_await server->start();
    for (unsigned i = 0; i < plan_.clients; ++i) spawn(client());
    for (kills_ = 0; kills_ < plan_.kills; ++kills_) {
      next_kill_ = answered_ + 1 + kill_random_() % 300;
      while (answered_ < next_kill_) co_await wait(answered_enough_);
      chaos::ServerProcess& victim = *servers_[kill_random_() % servers_.size()];
      victim.kill();
      co_await victim.start();
      notify(restarted_);
    }
    over_ = true;
    notify(restarted_);
    while (running_ > 0) co_await wait(ended_);
    for (const auto& server : servers_) server->kill();
  }

  // What the journals record for each operation.
  void check() const {
    std::map<std::uint64_t, unsigned> runs;
    for (const auto& server : servers_)
      for (const std::uint64_t operation : server->journal()) ++runs[operation];
    std::size_t acknowledged = 0, unknown = 0, repeated = 0;
    for (std::uint64_t number = 0; number < operations_.size(); ++number) {
      const Operation& operation = operations_[number];
      const auto found = runs.find(number);
      const unsigned times = found != runs.end() ? found->second : 0;
      acknowledged += operation.acknowledged ? 1 : 0;
      unknown += operation.perhaps_ran ? 1 : 0;
      repeated += times > 1 ? 1 : 0;
      if (operation.acknowledged) {
        EXPECT_GE(times, 1u) << "operation " << number << " was acknowledged and did not run";
      }
      if (!operation.idempotent) {
        EXPECT_LE(times, 1u) << "operation " << number << " is not idempotent and ran " << times << " times";
      }
      if (!operation.acknowledged && !operation.perhaps_ran) {
        EXPECT_EQ(times, 0u) << "operation " << number << " ran though every try was said not to have";
      }
      if (testing::Test::HasFailure()) break;
    }
    for (const auto& [number, times] : runs)
      EXPECT_LT(number, operations_.size()) << "a server ran what nobody asked for";
    std::printf("%zu operations: %zu acknowledged, %zu ended unknown once, %zu ran again, %u kills\n",
                operations_.size(), acknowledged, unknown, repeated, kills_);
    EXPECT_GT(acknowledged, plan_.kills);
    if (plan_.kills >= 10) {
      EXPECT_GT(unknown, 0u) << "no server was killed with a call under way: the test tests nothing";
    }
  }

 private:
  // A condition that coroutines of this io_context wait for.
  using Signal = std::vector<asio::steady_timer*>;
  asio::awaitable<void> wait(Signal& signal) {
    asio::steady_timer timer(io_, asio::steady_timer::time_point::max());
    signal.push_back(&timer);
    std::error_code woken;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
  void notify(Signal& signal) {
    for (asio::steady_timer* timer : std::exchange(signal, {})) timer->cancel();
  }

  void spawn(asio::awaitable<void> work) {
    ++running_;
    asio::co_spawn(io_, std::move(work), [this](const std::exception_ptr& thrown) {
      --running_;
      notify(ended_);
      if (thrown) std::rethrow_exception(thrown);
    });
  }

  asio::awaitable<void> client() {
    while (!over_) {
      const std::string address = servers_[random_() % servers_.size()]->address();
      if (address.empty()) {
        co_await wait(restarted_);
        continue;
      }
      ConnectOptions options = options_;
      auto connected = co_await connect(address, options);
      if (!connected) continue;  // killed meanwhile
      const auto shared = std::make_shared<Client>(std::move(*connected));
      // Some clients leave by themselves in the middle of their calls.
      const std::uint64_t leaves_at = random_() % 4 == 0 ? random_() % 200 : UINT64_MAX;
      unsigned left = plan_.at_once;
      Signal all_done;
      for (unsigned i = 0; i < plan_.at_once; ++i)
        asio::co_spawn(io_, calls(shared, answered_ + leaves_at), [&](const std::exception_ptr& thrown) {
          if (--left == 0) notify(all_done);
          if (thrown) std::rethrow_exception(thrown);
        });
      while (left > 0) co_await wait(all_done);
    }
  }

  asio::awaitable<void> calls(std::shared_ptr<Client> client, std::uint64_t leaves_at) {
    while (!over_ && client->is_open()) {
      if (answered_ >= leaves_at) {
        client->close();
        co_return;
      }
      const std::uint64_t number = next_operation();
      CallOptions options;
      options.idempotent = operations_[number].idempotent;
      Result<std::uint64_t> result(0);
      if (random_() % 2 == 0)
        result = co_await client->call<chaos::append>(options, number);
      else
        result = co_await client->call<chaos::append_later>(options, number);
      settle(number, result);
    }
  }

  std::uint64_t next_operation() {
    if (!again_.empty()) {
      const std::uint64_t number = again_.front();
      again_.pop_front();
      return number;
    }
    operations_.push_back({.idempotent = random_() % 4 == 0});
    return operations_.size() - 1;
  }

  void settle(std::uint64_t number, const Result<std::uint64_t>& result) {
    Operation& operation = operations_[number];
    if (++answered_ >= next_kill_) notify(answered_enough_);
    if (result) {
      EXPECT_EQ(*result, number) << "the answer of another call";
      operation.acknowledged = true;
      return;
    }
    if (!did_not_run(result.error().code)) operation.perhaps_ran = true;
    if (!operation.perhaps_ran || operation.idempotent) again_.push_back(number);
  }

  asio::io_context& io_;
  const Plan plan_;
  std::mt19937_64 kill_random_;  // separate, so that the same servers are killed whatever clients do
  std::mt19937_64 random_;
  const ConnectOptions options_;
  std::vector<std::unique_ptr<chaos::ServerProcess>> servers_;
  std::vector<Operation> operations_;
  std::deque<std::uint64_t> again_;
  Signal answered_enough_, restarted_, ended_;
  std::uint64_t answered_ = 0;
  std::uint64_t next_kill_ = UINT64_MAX;
  unsigned kills_ = 0;
  unsigned running_ = 0;
  bool over_ = false;
};

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

class ChaosTest : public RpcTest {
 protected:
  void survive(unsigned kills, std::uint64_t seed, std::chrono::seconds longest) {
    const char* repeat = std::getenv("WEIR_CHAOS_SEED");
    if (repeat != nullptr) seed = std::stoull(repeat);
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    round("first", 2, seed, longest);  // files that are opened once and kept
    const std::size_t descriptors = open_descriptors();
    round("then", kills, seed + 1, longest);
    // The NIC closes those of dead peers in its own thread; a leak for each kill would show.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (open_descriptors() >= descriptors + 10 && std::chrono::steady_clock::now() < patience)
      std::this_thread::yield();
    EXPECT_LT(open_descriptors(), descriptors + 10) << "descriptors leak";
  }

 private:
  void round(const std::string& name, unsigned kills, std::uint64_t seed, std::chrono::seconds longest) {
    Plan plan;
    plan.kills = kills;
    Chaos chaos(io, plan, seed, connect_options());
    for (unsigned i = 0; i < plan.servers; ++i)
      chaos.add_server(std::string(GetParam()) + "://127.0.0.1:0", folder.file(name + std::to_string(i)));
    bool ended = false;
    asio::co_spawn(io, chaos.run(), [&](const std::exception_ptr& thrown) {
      ended = true;
      if (thrown) std::rethrow_exception(thrown);
    });
    io.restart();
    io.run_for(longest);
    ASSERT_TRUE(ended) << "something still waits after " << longest.count() << " s";
    EXPECT_TRUE(io.stopped()) << "connections are left over";
    EXPECT_EQ(engine != nullptr ? engine->stats().connections : 0, 0u);
    chaos.check();
  }
};

TEST_P(ChaosTest, killed_servers_lose_no_acknowledged_call_and_repeat_none) {
  survive(10, 1, std::chrono::seconds(60));
}

// Label slow: hundreds of kills, with a new seed each time.
TEST_P(ChaosTest, many_killed_servers) { survive(300, std::random_device()(), std::chrono::seconds(900)); }

INSTANTIATE_TEST_SUITE_P(Over, ChaosTest, testing::Values("tcp", "rdma"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
