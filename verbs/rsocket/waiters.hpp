// Threads that sleep until a socket changes.
//
// A thread sleeps in poll() on a descriptor of its own and on those the kernel or the NIC raises. What
// another thread does to a socket (it took the event both were waiting for) reaches the sleeper through its
// own descriptor, so that nobody misses an event that somebody else consumed.
#pragma once

#include <poll.h>

#include <vector>

#include "link/unique_fd.hpp"

namespace weir::rsocket {

class Waiter {
 public:
  static Waiter& mine();  // of the calling thread

  int descriptor() const { return event_.get(); }
  void wake();   // any thread
  void clear();  // forgets wakes until now

  // Sleeps until woken, or until one of `others` is ready; their revents are filled. `timeout_ms` as poll().
  // Returns what poll() returned, with its errno.
  int sleep(std::vector<pollfd>& others, int timeout_ms);

 private:
  void open();
  link::UniqueFd event_;
  int owner_ = 0;  // pid: a forked child must not sleep on its parent's
};

// Who sleeps on one socket. The socket's mutex guards it.
class WaitList {
 public:
  void add(Waiter& waiter) { waiters_.push_back(&waiter); }
  void remove(Waiter& waiter);
  void wake_all();
  bool empty() const { return waiters_.empty(); }

 private:
  std::vector<Waiter*> waiters_;
};

}  // namespace weir::rsocket
