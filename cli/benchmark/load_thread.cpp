#include "cli/benchmark/load_thread.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "cli/benchmark/scheduling.hpp"
#include "cli/client/request.hpp"

namespace weir::benchmark {
namespace {

using Clock = std::chrono::steady_clock;
using client::ErrorKind;
using client::Milliseconds;

constexpr Milliseconds between_refreshes{100};

std::uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

}  // namespace

std::size_t thread_count(const LoadPlan& plan) {
  return std::clamp<std::size_t>(plan.threads, 1, plan.clients);
}

LoadThread::LoadThread(const LoadPlan& plan, const Workload& workload, LoadShare& share, std::size_t index)
    : plan_(plan),
      share_(share),
      targets_(plan, workload),
      numbers_(plan.keys, std::max<std::uint64_t>(1, plan.keyspace), plan.seed * 7919 + index * 104'729 + 1,
               index, thread_count(plan)),
      index_(index) {
  auto commands = client::login_commands(plan.login);
  if (!workload.preparation.empty()) commands.push_back(workload.preparation);
  for (const auto& command : commands) client::append_request(greeting_.bytes, command);
  greeting_.replies = commands.size();
}

void LoadThread::prepare() {
  pin();
  auto reactor = client::Reactor::for_transport(plan_.endpoint.transport);
  if (!reactor) return share_.fail(std::move(reactor.error()));
  reactor_ = std::move(*reactor);
  for (std::size_t i = 0; i < share_.connections && !plan_.stopped(); ++i) {
    connections_.push_back(std::make_unique<LoadConnection>(
        plan_, share_, targets_.of(i * thread_count(plan_) + index_), numbers_, greeting_, i));
    if (!connections_.back()->connect(*reactor_)) return;
    finish_login(*connections_.back());
  }
}

void LoadThread::run(LoadShare::Time start) {
  const auto cpu_before = thread_cpu_ns();
  const auto scheduled_before = scheduling_of_this_thread();
  if (plan_.duration_s)
    share_.stop =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*plan_.duration_s));
  begin(start);
  while (!share_.over() && !share_.abandoned.load(std::memory_order_relaxed) && !plan_.stopped()) {
    reactor_->turn(longest_turn(Clock::now()));
    if (!plan_.keep_alive) reconnect();
    if (!plan_.nodes.empty()) check_cluster(Clock::now());
    if (share_.open_loop) send_due(Clock::now());
    check_silence(Clock::now());
  }
  share_.finished = Clock::now();
  share_.cpu_ns = thread_cpu_ns() - cpu_before;
  if (const auto scheduled = scheduling_of_this_thread(); scheduled && scheduled_before)
    share_.cpu_wait_ns = scheduled->waited_for_others_ns(*scheduled_before);
  connections_.clear();
  report_nodes();
}
void LoadThread::begin(LoadShare::Time start) {
  if (share_.error || plan_.stopped()) return;
  if (!plan_.rate_per_s) {
    for (auto& connection : connections_) connection->send_batch(Clock::now());
    return;
  }
  ::prctl(PR_SET_TIMERSLACK,
          1UL);  // nanoseconds: by default a sleep ends up to 50 us late
  // Threads take turns: thread i starts i of the whole load's intervals later.
  const auto threads = static_cast<double>(thread_count(plan_));
  const std::chrono::duration<double> turn(static_cast<double>(index_) / *plan_.rate_per_s);
  share_.open_loop.emplace(start + std::chrono::duration_cast<Clock::duration>(turn), share_.stop,
                           *plan_.rate_per_s / threads, share_.to_send);
  send_due(Clock::now());
}

// Distributes due requests evenly over the connections, in turn.
void LoadThread::send_due(LoadShare::Time now) {
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

// How long it may wait if the server is silent.
std::chrono::nanoseconds LoadThread::longest_turn(LoadShare::Time now) const {
  const std::chrono::nanoseconds usual =
      std::min(share_.map_outdated ? between_refreshes : Milliseconds{250}, plan_.last_reply_limit);
  if (!share_.open_loop || share_.open_loop->all_taken()) return usual;
  // If requests wait for room, the next event will be a reply.
  const auto next =
      share_.open_loop->waits_for_room() ? share_.stop : std::min(share_.open_loop->next(), share_.stop);
  return std::clamp<std::chrono::nanoseconds>(next - now, std::chrono::nanoseconds{0}, usual);
}

void LoadThread::check_silence(LoadShare::Time now) {
  // While an open loop waits for its next request, silence is normal.
  const bool nothing_due = share_.under_way == 0 && share_.open_loop && share_.open_loop->due(now) == 0;
  const auto done = share_.done.load(std::memory_order_relaxed);
  if (std::exchange(last_done_, done) != done || nothing_due || last_reply_ == Clock::time_point{})
    last_reply_ = now;
  const bool past_end = now >= share_.stop;
  const Milliseconds limit = past_end ? plan_.last_reply_limit : plan_.reply_limit;
  if (now - (past_end ? std::max(last_reply_, share_.stop) : last_reply_) < limit) return;
  if (share_.map_outdated)
    return share_.fail({ErrorKind::timed_out,
                        "No node of the cluster could say who has which "
                        "slots; the last one was " +
                            targets_.problem()});
  share_.fail({ErrorKind::timed_out, "The server did not answer for " + std::to_string(limit.count()) +
                                         " ms, with " + std::to_string(share_.under_way) +
                                         " requests under way"});
}

void LoadThread::pin() {
  if (plan_.pinned_cpus.empty()) return;
  const int cpu = plan_.pinned_cpus[index_ % plan_.pinned_cpus.size()];
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::pthread_setaffinity_np(::pthread_self(), sizeof set, &set))
    share_.fail({ErrorKind::usage, "cannot pin a thread to CPU " + std::to_string(cpu) + "; see --pin"});
}

void LoadThread::finish_login(LoadConnection& connection) {
  const auto deadline = Clock::now() + plan_.connect_limit;
  while (!connection.greeted() && !share_.error && !plan_.stopped()) {
    reactor_->turn(Milliseconds{100});
    if (Clock::now() > deadline) share_.fail({ErrorKind::timed_out, "The server did not answer the login"});
  }
}

void LoadThread::reconnect() {
  for (auto& connection : connections_) {
    if (!connection->wants_reconnect()) continue;
    connection->reconnected();
    if (share_.error || share_.to_send == 0) continue;
    if (!connection->connect(*reactor_)) return;
    finish_login(*connection);
    connection->send_batch(Clock::now());
  }
}

// A node has said that a slot is elsewhere: reads the map again and moves
// connections to where the slots are. While the thread waits for the answer its
// requests wait too, as in any client of the cluster that has to ask.
void LoadThread::check_cluster(LoadShare::Time now) {
  if (share_.map_outdated && now >= next_refresh_) {
    if (targets_.refresh()) {
      share_.map_outdated = false;
      for (std::size_t i = 0; i < connections_.size(); ++i)
        connections_[i]->lead_to(targets_.of(i * thread_count(plan_) + index_));
    }
    next_refresh_ = Clock::now() + between_refreshes;
  }
  for (auto& connection : connections_) {
    if (!connection->wants_move()) continue;
    if (!connection->move(*reactor_)) return;
    finish_login(*connection);
    if (!share_.open_loop) connection->send_batch(Clock::now());
  }
}

void LoadThread::report_nodes() {
  if (plan_.nodes.empty()) return;
  for (const auto& target : targets_.all())
    share_.nodes.push_back({address_of(target.endpoint), target.answered, target.redirected});
}

}  // namespace weir::benchmark
