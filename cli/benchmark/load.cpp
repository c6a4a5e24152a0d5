#include "cli/benchmark/load.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/benchmark/load_share.hpp"
#include "cli/benchmark/load_thread.hpp"

namespace weir::benchmark {
namespace {

using Clock = std::chrono::steady_clock;

// Divides plan's clients and requests over the threads; the first ones take what is left over.
std::vector<std::unique_ptr<LoadShare>> divide(const LoadPlan& plan, std::atomic<bool>& abandoned) {
  const auto threads = thread_count(plan);
  std::vector<std::unique_ptr<LoadShare>> shares;
  for (std::size_t i = 0; i < threads; ++i) {
    auto share = std::make_unique<LoadShare>(abandoned);
    share->connections = plan.clients / threads + (i < plan.clients % threads ? 1 : 0);
    share->to_send = plan.requests / threads + (i < plan.requests % threads ? 1 : 0);
    shares.push_back(std::move(share));
  }
  return shares;
}

std::uint64_t total_done(const std::vector<std::unique_ptr<LoadShare>>& shares) {
  std::uint64_t done = 0;
  for (const auto& share : shares) done += share->done.load(std::memory_order_relaxed);
  return done;
}

void add_nodes(std::vector<NodeCount>& sum, const std::vector<NodeCount>& of_a_thread) {
  for (const auto& node : of_a_thread) {
    auto at = std::ranges::lower_bound(sum, node.address, {}, &NodeCount::address);
    if (at == sum.end() || at->address != node.address) at = sum.insert(at, {node.address});
    at->answered += node.answered;
    at->redirected += node.redirected;
  }
}

}  // namespace

client::Result<LoadResult> run_load(const LoadPlan& plan, const Workload& workload, LoadWatcher* watcher) {
  std::atomic<bool> abandoned{false};
  auto shares = divide(plan, abandoned);
  Clock::time_point start{};
  std::barrier ready(static_cast<std::ptrdiff_t>(shares.size()),
                     [&start]() noexcept { start = Clock::now(); });
  std::mutex mutex;
  std::condition_variable finished;
  std::size_t running = shares.size();

  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < shares.size(); ++i)
    threads.emplace_back([&, i] {
      LoadThread thread(plan, workload, *shares[i], i);
      thread.prepare();
      ready.arrive_and_wait();
      thread.run(start);
      const std::lock_guard lock(mutex);
      --running;
      finished.notify_one();
    });
  {
    const auto began = Clock::now();
    std::unique_lock lock(mutex);
    while (!finished.wait_for(lock, std::chrono::milliseconds(250), [&] { return running == 0; }))
      if (watcher)
        watcher->running(total_done(shares), std::chrono::duration<double>(Clock::now() - began).count());
  }
  threads.clear();  // joins

  LoadResult result;
  const bool keep_results = plan.stopped() && total_done(shares) > 0;
  for (const auto& share : shares) {
    if (share->error && !keep_results) return std::unexpected(*share->error);
    result.latency.add(share->latency);
    result.requests += share->done.load();
    result.cpu_ns += share->cpu_ns;
    result.cpu_wait_ns = std::max(result.cpu_wait_ns, share->cpu_wait_ns);
    result.nulls += share->nulls;
    result.unsent += share->unsent;
    add_nodes(result.nodes, share->nodes);
    if (share->open_loop) result.lateness.add(share->open_loop->lateness());
    result.elapsed_s =
        std::max(result.elapsed_s, std::chrono::duration<double>(share->finished - start).count());
  }
  return result;
}

}  // namespace weir::benchmark
