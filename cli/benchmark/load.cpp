#include "cli/benchmark/load.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/benchmark/load_connection.hpp"
#include "cli/benchmark/load_share.hpp"
#include "cli/client/request.hpp"

namespace weir::benchmark {
namespace {

using Clock = std::chrono::steady_clock;
using client::ErrorKind;
using client::Milliseconds;

std::uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

std::size_t thread_count(const LoadPlan& plan) {
  return std::clamp<std::size_t>(plan.threads, 1, plan.clients);
}

class LoadThread {
 public:
  LoadThread(const LoadPlan& plan, const Workload& workload, LoadShare& share, std::size_t index)
      : plan_(plan),
        share_(share),
        requests_(std::make_shared<RequestRing>(workload, plan.pipeline, plan.seed)),
        numbers_(plan.keys, std::max<std::uint64_t>(1, plan.keyspace), plan.seed * 7919 + index * 104'729 + 1,
                 index, thread_count(plan)),
        index_(index) {
    auto commands = client::login_commands(plan.login);
    if (!workload.preparation.empty()) commands.push_back(workload.preparation);
    for (const auto& command : commands) client::append_request(greeting_.bytes, command);
    greeting_.replies = commands.size();
  }

  // Everything up to the first request: connections open and greeted.
  void prepare() {
    pin();
    auto reactor = client::Reactor::for_transport(plan_.endpoint.transport);
    if (!reactor) return share_.fail(std::move(reactor.error()));
    reactor_ = std::move(*reactor);
    for (std::size_t i = 0; i < share_.connections && !plan_.stopped(); ++i) {
      connections_.push_back(
          std::make_unique<LoadConnection>(plan_, share_, requests_, numbers_, greeting_, i));
      if (!connections_.back()->connect(*reactor_)) return;
      finish_login(*connections_.back());
    }
  }

  void run(Clock::time_point start) {
    const auto cpu_before = thread_cpu_ns();
    if (plan_.duration_s)
      share_.stop = start + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(*plan_.duration_s));
    begin(start);
    while (!share_.over() && !share_.abandoned.load(std::memory_order_relaxed) && !plan_.stopped()) {
      reactor_->turn(longest_turn(Clock::now()));
      if (!plan_.keep_alive) reconnect();
      if (share_.open_loop) send_due(Clock::now());
      mind_silence(Clock::now());
    }
    share_.finished = Clock::now();
    share_.cpu_ns = thread_cpu_ns() - cpu_before;
    connections_.clear();
  }

 private:
  void begin(Clock::time_point start) {
    if (share_.error || plan_.stopped()) return;
    if (!plan_.rate_per_s) {
      for (auto& connection : connections_) connection->send_batch(Clock::now());
      return;
    }
    ::prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds: by default a sleep ends up to 50 us late
    // Threads take turns: thread i begins i of the load's intervals later.
    const auto threads = static_cast<double>(thread_count(plan_));
    const std::chrono::duration<double> turn(static_cast<double>(index_) / *plan_.rate_per_s);
    share_.open_loop.emplace(start + std::chrono::duration_cast<Clock::duration>(turn), share_.stop,
                             *plan_.rate_per_s / threads, share_.to_send);
    send_due(Clock::now());
  }

  // Gives what is due to the connections, in turn, an even part to each.
  void send_due(Clock::time_point now) {
    auto& schedule = *share_.open_loop;
    if (now >= share_.stop || schedule.all_taken()) return share_.give_up_the_rest(now);
    auto due = schedule.due(now);
    for (const auto part : {(due + connections_.size() - 1) / connections_.size(), due}) {
      const bool any_room = share_.under_way < connections_.size() * plan_.pipeline;
      for (std::size_t i = 0; any_room && due > 0 && i < connections_.size(); ++i) {
        due -= connections_[next_to_send_]->send_due(std::min(part, due), now);
        next_to_send_ = (next_to_send_ + 1) % connections_.size();
      }
    }
    if (due > 0) schedule.no_room();
  }

  // Until something has to be done even if the server is silent.
  std::chrono::nanoseconds longest_turn(Clock::time_point now) const {
    const std::chrono::nanoseconds usual = std::min(Milliseconds{250}, plan_.last_reply_limit);
    if (!share_.open_loop || share_.open_loop->all_taken()) return usual;
    // Where requests wait for a place, a reply brings the next event.
    const auto next =
        share_.open_loop->waits_for_room() ? share_.stop : std::min(share_.open_loop->next(), share_.stop);
    return std::clamp<std::chrono::nanoseconds>(next - now, std::chrono::nanoseconds{0}, usual);
  }

  void mind_silence(Clock::time_point now) {
    const auto done = share_.done.load(std::memory_order_relaxed);
    if (std::exchange(last_done_, done) != done || share_.under_way == 0 ||
        last_reply_ == Clock::time_point{})
      last_reply_ = now;
    const bool past_end = now >= share_.stop;
    const Milliseconds limit = past_end ? plan_.last_reply_limit : plan_.reply_limit;
    if (now - (past_end ? std::max(last_reply_, share_.stop) : last_reply_) < limit) return;
    share_.fail({ErrorKind::timed_out, "The server did not answer for " + std::to_string(limit.count()) +
                                           " ms, with " + std::to_string(share_.under_way) +
                                           " requests under way"});
  }

  void pin() {
    if (plan_.pinned_cpus.empty()) return;
    const int cpu = plan_.pinned_cpus[index_ % plan_.pinned_cpus.size()];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set))
      share_.fail({ErrorKind::usage, "cannot pin a thread to CPU " + std::to_string(cpu) + "; see --pin"});
  }

  void finish_login(LoadConnection& connection) {
    const auto deadline = Clock::now() + plan_.connect_limit;
    while (!connection.greeted() && !share_.error && !plan_.stopped()) {
      reactor_->turn(Milliseconds{100});
      if (Clock::now() > deadline) share_.fail({ErrorKind::timed_out, "The server did not answer the login"});
    }
  }

  void reconnect() {
    for (auto& connection : connections_) {
      if (!connection->wants_reconnect()) continue;
      connection->reconnected();
      if (share_.error || share_.to_send == 0) continue;
      if (!connection->connect(*reactor_)) return;
      finish_login(*connection);
      connection->send_batch(Clock::now());
    }
  }

  const LoadPlan& plan_;
  LoadShare& share_;
  std::shared_ptr<RequestRing> requests_;
  KeyNumbers numbers_;
  std::size_t index_;
  LoadConnection::Greeting greeting_;
  std::unique_ptr<client::Reactor> reactor_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  std::size_t next_to_send_ = 0;  // whose turn it is in an open loop
  std::uint64_t last_done_ = 0;
  Clock::time_point last_reply_{};  // or the beginning
};

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
    result.nulls += share->nulls;
    result.unsent += share->unsent;
    if (share->open_loop) result.lateness.add(share->open_loop->lateness());
    result.elapsed_s =
        std::max(result.elapsed_s, std::chrono::duration<double>(share->finished - start).count());
  }
  return result;
}

}  // namespace weir::benchmark
