// Callers of a pool while its servers are killed and restarted elsewhere: the pool retries what it may retry,
// so that no idempotent call fails, and no other call ever runs twice.
#include <asio/redirect_error.hpp>
#include <fstream>
#include <map>
#include <random>

#include "rpc/pool.hpp"
#include "tests/rpc/chaos/journal.hpp"
#include "tests/rpc/chaos/server_process.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

constexpr std::size_t servers = 3;
constexpr unsigned callers = 16;

struct Told {
  bool idempotent = false;
  Result<std::uint64_t> result{0};
};

class PoolChaosTest : public testing_support::RpcTest {
 protected:
  std::vector<std::unique_ptr<chaos::ServerProcess>> processes;
  std::vector<Told> told;
  unsigned running = 0;
  bool over_now = false;

  // The current addresses, for the pool's resolver: one line each, replaced atomically.
  void publish() {
    {
      std::ofstream file(folder.file("next"));
      for (const auto& process : processes)
        if (!process->address().empty()) file << process->address() << "\n";
    }
    std::filesystem::rename(folder.file("next"), folder.file("servers"));
  }

  asio::awaitable<void> call(Pool& pool, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    while (!over_now) {
      const std::uint64_t number = told.size();
      told.push_back({random() % 2 == 0, Result<std::uint64_t>(0)});
      CallOptions options;
      options.idempotent = told[number].idempotent;
      Result<std::uint64_t> result(0);
      if (random() % 2 == 0)
        result = co_await pool.call<chaos::append>(options, number);
      else
        result = co_await pool.call<chaos::append_later>(options, number);
      told[number].result = std::move(result);
    }
    --running;
  }

  asio::awaitable<void> kill_and_restart(std::uint64_t seed, unsigned kills) {
    std::mt19937_64 random(seed);
    for (unsigned i = 0; i < kills; ++i) {
      const std::size_t until = told.size() + 100 + random() % 300;
      while (told.size() < until) co_await asio::post(io, asio::use_awaitable);
      chaos::ServerProcess& victim = *processes[random() % servers];
      victim.kill();
      publish();
      co_await victim.start();
      publish();
    }
    over_now = true;
  }

  void check() {
    std::map<std::uint64_t, unsigned> runs;
    for (const auto& process : processes)
      for (const std::uint64_t operation : process->journal()) ++runs[operation];
    std::size_t acknowledged = 0, again = 0, unknown = 0;
    for (std::uint64_t number = 0; number < told.size(); ++number) {
      const Told& one = told[number];
      const unsigned times = runs.contains(number) ? runs[number] : 0;
      acknowledged += one.result ? 1 : 0;
      again += times > 1 ? 1 : 0;
      if (one.result) {
        EXPECT_EQ(*one.result, number) << "the answer of another call";
        EXPECT_GE(times, 1u) << number << " was acknowledged and did not run";
      } else {
        unknown += did_not_run(one.result.error().code) ? 0 : 1;
        EXPECT_FALSE(one.idempotent) << number << ": " << one.result.error().what;
        if (did_not_run(one.result.error().code)) {
          EXPECT_EQ(times, 0u) << number << ": " << one.result.error().what;
        }
      }
      if (!one.idempotent) {
        EXPECT_LE(times, 1u) << number << " may not run twice";
      }
      if (HasFailure()) return;
    }
    std::printf("%zu calls: %zu acknowledged, %zu of them made again after they had run, %zu may have run\n",
                told.size(), acknowledged, again, unknown);
    EXPECT_GT(unknown, 0u) << "no server was killed with a call under way: the test tests nothing";
  }
};

TEST_P(PoolChaosTest, killed_servers_cost_no_idempotent_call_and_no_other_runs_twice) {
  const char* repeat = std::getenv("WEIR_CHAOS_SEED");
  const std::uint64_t seed = repeat != nullptr ? std::stoull(repeat) : 3;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  for (std::size_t i = 0; i < servers; ++i)
    processes.push_back(std::make_unique<chaos::ServerProcess>(io, std::string(GetParam()) + "://127.0.0.1:0",
                                                               folder.file("journal" + std::to_string(i))));
  run([&]() -> asio::awaitable<void> {
    for (const auto& process : processes) co_await process->start();
  });
  publish();
  PoolOptions options;
  options.connect = connect_options();
  options.balancing = Balancing::least_loaded;
  options.retry.attempts = 20;
  options.retry.first_wait = std::chrono::milliseconds(1);
  options.seed = seed;
  Pool pool(io, watched_file(folder.file("servers")), options);
  for (; running < callers; ++running)
    asio::co_spawn(io, call(pool, seed + running), [](const std::exception_ptr& thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
  run([&] { return kill_and_restart(seed, 12); });
  run_until([this] { return running == 0; });
  for (const auto& process : processes) process->kill();
  check();
}

INSTANTIATE_TEST_SUITE_P(Over, PoolChaosTest, testing::Values("tcp", "rdma"),
                         testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
