// An io_context without a thread of its own: the threads that wait for results run it, one at a time.
//
// The calling thread does the work of its own fetch, so no work crosses threads: for 4 KiB the switch would
// cost more than the transfer. When several threads wait, one drives the io_context and the others sleep. The
// driver wakes them when something is done, and one of them takes over when it leaves. Threading: any thread;
// work given to post() runs in whichever thread drives.
#pragma once

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace weir::tensor {

class CallerDriven {
 public:
  using Clock = std::chrono::steady_clock;

  // Now plus `timeout`, capped at a year so that the sum cannot overflow.
  static Clock::time_point after(std::chrono::nanoseconds timeout) {
    const auto most = std::min<std::chrono::nanoseconds>(timeout, std::chrono::hours(24 * 365));
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(most);
  }

  asio::io_context& io() { return io_; }
  template <class Work>
  void post(Work work) {
    asio::post(io_, std::move(work));
  }

  // Call in the driving thread when something that a waiter may wait for is done.
  void progressed() { progress_ = true; }

  // Runs or waits until done() or `deadline`; returns done(). `done` may read only atomics, and the code that
  // changes them calls progressed(). At the deadline, handlers that are ready still run, so a caller with a
  // zero timeout makes progress too.
  template <class Done>
  bool run_until(Done done, Clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    while (!done()) {
      const bool late = Clock::now() >= deadline;
      if (driving_) {
        if (late) return false;
        ++followers_;
        changed_.wait_until(lock, deadline);
        --followers_;
        continue;
      }
      driving_ = true;
      lock.unlock();
      if (late)
        run_ready(done);
      else
        drive(done, deadline);
      lock.lock();
      driving_ = false;
      if (followers_ > 0) changed_.notify_all();  // wake one to drive
      if (late) return done();
    }
    return true;
  }

 private:
  template <class Done>
  void drive(const Done& done, Clock::time_point deadline) {
    while (!done() && Clock::now() < deadline) {
      io_.run_one_until(deadline);
      wake_followers();
    }
  }
  // Bounded, because an engine that polls always has another handler ready.
  template <class Done>
  void run_ready(const Done& done) {
    for (int i = 0; i < most_ready && !done() && io_.poll_one() > 0; ++i) wake_followers();
  }
  void wake_followers() {
    if (!progress_.exchange(false) || followers_ == 0) return;
    const std::lock_guard again(mutex_);
    changed_.notify_all();
  }

  static constexpr int most_ready = 128;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> guard_{io_.get_executor()};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool driving_ = false;
  std::atomic<int> followers_ = 0;  // changes under mutex_; the driver reads it without the lock
  std::atomic<bool> progress_ = false;
};

}  // namespace weir::tensor
