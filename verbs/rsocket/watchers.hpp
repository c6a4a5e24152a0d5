// Who wants to know that a socket changed: threads that sleep until then, and event polls.
//
// A thread sleeps in poll() on a descriptor of its own and on those the kernel or the NIC raises. What
// another thread does to a socket (it took the event both were waiting for) reaches the sleeper through its
// own descriptor, so that nobody misses an event that somebody else consumed.
#pragma once

#include <poll.h>

#include <mutex>
#include <vector>

#include "link/unique_fd.hpp"

namespace weir::rsocket {

class Watcher {
 public:
  // Something happened to the socket, which is asked what it was. The socket's mutex is held; any thread.
  virtual void changed() = 0;

 protected:
  ~Watcher() = default;
};

// A thread.
class Waiter final : public Watcher {
 public:
  static Waiter& mine();  // of the calling thread

  void changed() override;  // wakes it
  void clear();             // forgets wakes until now

  // Sleeps until woken, or until one of `others` is ready; their revents are filled. `timeout_ms` as poll().
  // Returns what poll() returned, with its errno.
  int sleep(std::vector<pollfd>& others, int timeout_ms);

 private:
  void open();
  link::UniqueFd event_;
  int owner_ = 0;  // pid: a forked child must not sleep on its parent's
};

// Who watches one socket. The socket's mutex guards it.
class WatchList {
 public:
  void add(Watcher& watcher) { watchers_.push_back(&watcher); }
  void remove(Watcher& watcher);
  void wake_all();
  bool empty() const { return watchers_.empty(); }

 private:
  std::vector<Watcher*> watchers_;
};

// Scope of a watcher on a list. `hold` is of the socket's mutex, and held at the end of it: also one that is
// cancelled in its sleep, without the mutex, is told of nothing more.
class Listed {
 public:
  Listed(WatchList& list, Watcher& watcher, std::unique_lock<std::mutex>& hold)
      : list_(list), watcher_(watcher), hold_(hold) {
    list_.add(watcher_);
  }
  ~Listed() {
    if (!hold_.owns_lock()) hold_.lock();
    list_.remove(watcher_);
  }
  Listed(const Listed&) = delete;
  Listed& operator=(const Listed&) = delete;

 private:
  WatchList& list_;
  Watcher& watcher_;
  std::unique_lock<std::mutex>& hold_;
};

}  // namespace weir::rsocket
