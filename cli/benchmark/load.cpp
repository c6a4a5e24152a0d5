#include "cli/benchmark/load.hpp"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/client/reply_count.hpp"
#include "cli/client/request.hpp"

namespace weir::benchmark {
namespace {

using Clock = std::chrono::steady_clock;
using client::Error;
using client::ErrorKind;
using client::Milliseconds;

std::uint64_t nanoseconds(Clock::duration duration) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(duration).count());
}

std::uint64_t thread_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// What one thread does and has measured.
struct Share {
  explicit Share(std::atomic<bool>& a) : abandoned(a) {}

  std::atomic<bool>& abandoned;  // one thread failed: the others need not finish
  std::uint64_t to_send = 0;     // requests not yet given to a connection
  std::uint64_t under_way = 0;
  std::size_t connections = 0;
  Clock::time_point stop = Clock::time_point::max();
  Clock::time_point finished{};
  std::uint64_t cpu_ns = 0;
  LatencyHistogram latency;
  std::optional<Error> error;
  std::atomic<std::uint64_t> done{
      0};  // written by its thread, read by the watcher: a count, no ordering needed

  void fail(Error why) {
    if (!error) error = std::move(why);
    abandoned.store(true, std::memory_order_relaxed);
  }
  bool over() const { return error || (to_send == 0 && under_way == 0); }
};

// A connection under load. Its buffers live as long as it does: a reconnect allocates nothing of its own.
class LoadConnection final : public client::ConnectionEvents {
 public:
  LoadConnection(const LoadPlan& plan, Share& share, std::shared_ptr<RequestBatch> requests,
                 std::span<const std::byte> login, std::uint64_t login_replies, std::minstd_rand random)
      : plan_(plan),
        share_(share),
        requests_(std::move(requests)),
        login_(login),
        login_replies_(login_replies),
        random_(random) {
    // Digits are this connection's own, since part of a batch may still wait to be written.
    own_digits_ = plan.keyspace && requests_->has_random_digits();
    if (own_digits_) requests_ = std::make_shared<RequestBatch>(*requests_);
  }

  bool connect(client::Reactor& reactor) {
    connection_.reset();
    counter_ = {};
    awaited_ = 0;
    auto connection = reactor.open(plan_.endpoint, *this, plan_.connect_limit);
    if (!connection) {
      share_.fail(std::move(connection.error()));
      return false;
    }
    connection_ = std::move(*connection);
    awaited_login_replies_ = login_replies_;
    unsent_ = login_;
    flush();
    return true;
  }

  bool logged_in() const { return awaited_login_replies_ == 0; }
  bool wants_reconnect() const { return wants_reconnect_; }
  void reconnected() { wants_reconnect_ = false; }

  // Sends the next batch, if there is one.
  void send_batch(Clock::time_point now) {
    if (share_.to_send == 0) return;
    if (now >= share_.stop) {
      share_.to_send = 0;
      return;
    }
    awaited_ = std::min<std::uint64_t>(plan_.pipeline, share_.to_send);
    share_.to_send -= awaited_;
    share_.under_way += awaited_;
    if (own_digits_) requests_->randomise(random_, plan_.keyspace);
    unsent_ = requests_->first(awaited_);
    sent_at_ = now;
    flush();
  }

  void received(std::span<const std::byte> bytes) override {
    auto replies = counter_.count(bytes);
    if (!replies) return share_.fail(std::move(replies.error()));
    if (counter_.errors()) [[unlikely]]
      return share_.fail({ErrorKind::refused, "Error from server: " + counter_.first_error()});
    if (awaited_login_replies_) {
      awaited_login_replies_ -= std::min(awaited_login_replies_, *replies);
      return;
    }
    if (*replies == 0) return;
    if (*replies > awaited_)
      return share_.fail(
          {ErrorKind::protocol, "Protocol error: the server sent more replies than it got requests"});
    const auto now = Clock::now();
    share_.latency.record(nanoseconds(now - sent_at_), *replies);
    share_.under_way -= *replies;
    share_.done.store(share_.done.load(std::memory_order_relaxed) + *replies, std::memory_order_relaxed);
    awaited_ -= *replies;
    if (awaited_ > 0) return;
    if (plan_.keep_alive) return send_batch(now);
    wants_reconnect_ = true;
  }

  void writable() override { flush(); }
  void ended(const Error& why) override { share_.fail(why); }

 private:
  void flush() {
    // What is not copied was read by the device when its replies are here, so the next batch may change it.
    if (!unsent_.empty())
      unsent_ = unsent_.subspan(connection_->write(unsent_, logged_in() ? requests_ : nullptr));
  }

  const LoadPlan& plan_;
  Share& share_;
  std::shared_ptr<RequestBatch> requests_;  // of all the thread's connections, if they change nothing in it
  bool own_digits_ = false;
  std::span<const std::byte> login_;
  std::uint64_t login_replies_;
  std::uint64_t awaited_login_replies_ = 0;
  std::minstd_rand random_;
  client::ReplyCounter counter_;
  std::uint64_t awaited_ = 0;
  std::span<const std::byte> unsent_;
  Clock::time_point sent_at_{};
  bool wants_reconnect_ = false;
  std::unique_ptr<client::Connection> connection_;
};

class LoadThread {
 public:
  LoadThread(const LoadPlan& plan, const Workload& workload, Share& share, std::size_t index)
      : plan_(plan),
        share_(share),
        requests_(std::make_shared<RequestBatch>(workload, plan.pipeline)),
        index_(index) {
    const auto commands = client::login_commands(plan.login);
    for (const auto& command : commands) client::append_request(login_, command);
    login_replies_ = commands.size();
  }

  // Everything up to the first request: connections open and logged in.
  void prepare() {
    pin();
    auto reactor = client::Reactor::for_transport(plan_.endpoint.transport);
    if (!reactor) return share_.fail(std::move(reactor.error()));
    reactor_ = std::move(*reactor);
    for (std::size_t i = 0; i < share_.connections && !plan_.stopped(); ++i) {
      const auto seed =
          static_cast<std::minstd_rand::result_type>(plan_.seed * 7919 + index_ * 104'729 + i + 1);
      connections_.push_back(std::make_unique<LoadConnection>(plan_, share_, requests_,
                                                              std::as_bytes(std::span(login_)),
                                                              login_replies_, std::minstd_rand(seed)));
      if (!connections_.back()->connect(*reactor_)) return;
      finish_login(*connections_.back());
    }
  }

  void run(Clock::time_point start) {
    const auto cpu_before = thread_cpu_ns();
    if (plan_.duration_s)
      share_.stop = start + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(*plan_.duration_s));
    if (!share_.error && !plan_.stopped())
      for (auto& connection : connections_) connection->send_batch(Clock::now());
    while (!share_.over() && !share_.abandoned.load(std::memory_order_relaxed) && !plan_.stopped()) {
      reactor_->turn(std::min(Milliseconds{250}, plan_.last_reply_limit));
      if (!plan_.keep_alive) reconnect();
      mind_silence(Clock::now());
    }
    share_.finished = Clock::now();
    share_.cpu_ns = thread_cpu_ns() - cpu_before;
    connections_.clear();
  }

 private:
  void mind_silence(Clock::time_point now) {
    const auto done = share_.done.load(std::memory_order_relaxed);
    if (std::exchange(last_done_, done) != done || last_reply_ == Clock::time_point{}) last_reply_ = now;
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
    while (!connection.logged_in() && !share_.error && !plan_.stopped()) {
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
  Share& share_;
  std::shared_ptr<RequestBatch> requests_;
  std::size_t index_;
  std::string login_;
  std::uint64_t login_replies_ = 0;
  std::unique_ptr<client::Reactor> reactor_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  std::uint64_t last_done_ = 0;
  Clock::time_point last_reply_{};  // or the beginning
};

// Divides plan's clients and requests over the threads; the first ones take what is left over.
std::vector<std::unique_ptr<Share>> divide(const LoadPlan& plan, std::atomic<bool>& abandoned) {
  const auto threads = std::clamp<std::size_t>(plan.threads, 1, plan.clients);
  std::vector<std::unique_ptr<Share>> shares;
  for (std::size_t i = 0; i < threads; ++i) {
    auto share = std::make_unique<Share>(abandoned);
    share->connections = plan.clients / threads + (i < plan.clients % threads ? 1 : 0);
    share->to_send = plan.requests / threads + (i < plan.requests % threads ? 1 : 0);
    shares.push_back(std::move(share));
  }
  return shares;
}

std::uint64_t total_done(const std::vector<std::unique_ptr<Share>>& shares) {
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
    result.elapsed_s =
        std::max(result.elapsed_s, std::chrono::duration<double>(share->finished - start).count());
  }
  return result;
}

}  // namespace weir::benchmark
