// The one thread of a link: an epoll loop for descriptors, timers and posted functions.
//
// It sleeps in the kernel whenever nothing is due; an idle link costs no wake-up. All signals are blocked in
// it, so the application's handlers never run here.
//
// Threading: every function may be called from any thread. Callbacks run on the progress thread, one at a
// time, with no lock of this class held. After remove() and cancel() (when it returns true) the callback will
// not run; remove() called from another thread waits for a callback that is running.
//
// After fork() the child has this object but not its thread: lock_for_fork() and unlock_after_fork() around
// the fork keep it whole, abandon() in the child closes its descriptors and makes every function do nothing.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "link/same_host.hpp"
#include "link/unique_fd.hpp"

namespace weir::link {

class ProgressThread {
 public:
  using Key = std::uint64_t;  // of a watched descriptor; never reused
  using TimerId = std::uint64_t;
  using Ready = std::function<void(std::uint32_t events)>;

  static Result<std::shared_ptr<ProgressThread>> start();
  ~ProgressThread();
  // Ends the thread; what has not run by then never will. Not from the progress thread.
  void stop();

  // Level-triggered. `events` as epoll has them; EPOLLHUP and EPOLLERR always come too.
  Result<Key> add(int fd, std::uint32_t events, Ready ready);
  void change(Key key, std::uint32_t events);
  void remove(Key key);  // the descriptor may be closed already

  TimerId at(Clock::time_point due, std::function<void()> run);  // equal times run in the order given
  bool cancel(TimerId timer);
  void post(std::function<void()> run);
  bool is_current() const;

  void lock_for_fork();
  void unlock_after_fork();
  void abandon();
  bool abandoned() const { return abandoned_.load(std::memory_order_acquire); }

 private:
  struct Source {
    int fd;
    std::uint32_t events;
    Ready ready;
  };
  using TimerOrder = std::pair<Clock::time_point, TimerId>;

  ProgressThread() = default;
  Result<void> open_descriptors();
  void run();
  void run_source(Key key, std::uint32_t events);
  void run_due_timers();
  void run_posted();
  void wake();
  void arm_timer_descriptor();  // mutex_ held
  void drop_what_will_not_run();

  UniqueFd epoll_, wake_, timer_;
  std::unique_ptr<std::thread> thread_;  // on the heap: a forked child must leave it unjoined
  std::atomic<std::thread::id> thread_id_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> abandoned_ = false;  // set once, in a forked child

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable source_idle_;
  std::unordered_map<Key, std::shared_ptr<Source>> sources_;
  Key next_key_ = 2;  // 0 and 1 are wake_ and timer_
  Key running_source_ = 0;
  std::map<TimerOrder, std::function<void()>> timers_;
  std::unordered_map<TimerId, Clock::time_point> timer_due_;
  TimerId next_timer_ = 1;
  Clock::time_point armed_for_ = Clock::time_point::max();
  std::vector<std::function<void()>> posted_;
};

}  // namespace weir::link
