#include "rpc/server/blocking_threads.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace weir::rpc {

struct BlockingThreads::State {
  struct Job {
    std::uint64_t number = 0;
    Run run;
    Done done;
  };

  explicit State(BlockingOptions with) : options(with) { options.threads = std::max(1u, options.threads); }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return stopping || !waiting.empty(); });
      if (waiting.empty()) return;
      ++running;
      Job job = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      job.run();
      job.done({});
      job = Job();  // free what it owns before waiting for the next
      lock.lock();
      --running;
    }
  }

  BlockingOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Job> waiting;
  std::vector<std::thread> threads;
  std::size_t running = 0;  // jobs
  std::uint64_t numbers = 0;
  bool stopping = false;
};

BlockingThreads::BlockingThreads(BlockingOptions options) : state_(std::make_unique<State>(options)) {}
BlockingThreads::~BlockingThreads() { stop(); }

std::uint64_t BlockingThreads::begin(Run run, Done done) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const std::uint64_t number = ++state.numbers;
  if (state.stopping) {
    lock.unlock();
    done(fail(Errc::closed, "the threads for functions that block have stopped"));
    return number;
  }
  const std::size_t taken = state.running + state.waiting.size();
  if (taken >= std::size_t{state.options.threads} + state.options.max_waiting) {
    lock.unlock();
    done(fail(Errc::overloaded, "all " + std::to_string(state.options.threads) +
                                    " threads for functions that block are busy, and " +
                                    std::to_string(state.options.max_waiting) +
                                    " calls wait for one: try again later"));
    return number;
  }
  const bool starts = taken >= state.threads.size() && state.threads.size() < state.options.threads;
  if (starts) state.threads.emplace_back([&state] { state.work(); });
  state.waiting.push_back({number, std::move(run), std::move(done)});
  lock.unlock();
  state.changed.notify_one();
  return number;
}

void BlockingThreads::cancel(std::uint64_t number) {
  State::Job job;
  {
    const std::lock_guard lock(state_->mutex);
    const auto found = std::ranges::find(state_->waiting, number, &State::Job::number);
    if (found == state_->waiting.end()) return;
    job = std::move(*found);
    state_->waiting.erase(found);
  }
  job.done(fail(Errc::cancelled, "cancelled before it ran"));
}

void BlockingThreads::stop() {
  std::deque<State::Job> dropped;
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    dropped.swap(state_->waiting);
    threads.swap(state_->threads);
  }
  state_->changed.notify_all();
  for (const State::Job& job : dropped)
    job.done(fail(Errc::closed, "the threads for functions that block have stopped; it did not run"));
  for (std::thread& thread : threads) thread.join();
}

}  // namespace weir::rpc
