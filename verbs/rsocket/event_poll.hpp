// epoll(7) over rsockets and plain descriptors: what repoll_create() makes.
//
// Plain descriptors are in a kernel epoll instance, whose descriptor is this one's number. An rsocket is in
// one of two states:
//   watched by eye      each wait() looks at it: no system call, and no work for the peer
//   watched by kernel   it is armed, and its descriptors are in the kernel's set too
// An rsocket that something happened to is watched by eye; one at which nothing was seen for a while is
// armed. Before a thread sleeps all are. So a busy program finds its events without the kernel, wait() does
// not cost more with idle sockets, and nobody looks in vain for ever.
//
// EPOLLET: told again only after the socket changed; at times without need, which edge-triggered programs
// have to be ready for anyway. EPOLLEXCLUSIVE and EPOLLWAKEUP mean nothing for rsockets. An rsocket that is
// closed leaves every event poll.
//
// Threading: any thread. Locks: mutex_, then a socket's, then touched_mutex_.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "link/unique_fd.hpp"
#include "verbs/rsocket/socket.hpp"

namespace weir::rsocket {

class EventPoll {
 public:
  static Result<std::shared_ptr<EventPoll>> open(int flags);  // as epoll_create1()
  ~EventPoll();

  int descriptor() const { return kernel_.get(); }
  int control(int operation, int fd, const epoll_event* event);  // as epoll_ctl(); 0 or an errno
  // As epoll_wait(): how many events, EINTR, EBADF once close() was called.
  Result<std::size_t> wait(std::span<epoll_event> events, int timeout_ms);
  void forget(int number);  // that rsocket is closed
  void close();             // wait() ends, now and ever

 private:
  // An rsocket in the set.
  struct Watch final : Watcher {
    Watch(EventPoll& its_poll, SocketPtr its_socket) : poll(its_poll), socket(std::move(its_socket)) {}
    void changed() override { poll.touch(*this); }

    EventPoll& poll;
    const SocketPtr socket;
    epoll_event asked{};
    unsigned looks_in_vain = 0;
    bool told = false;        // of EPOLLONESHOT: nothing more until EPOLL_CTL_MOD
    unsigned generation = 0;  // of `in_kernel`
    std::vector<int> in_kernel;
    // Partner: touch(). Set by a change, taken when an edge is told of.
    std::atomic<bool> news = true;
    // Partner: touch(). While true, whoever waits will look, and need not be told. It becomes false before
    // the last look at the socket, whose mutex orders the two: a change after that look finds it false.
    std::atomic<bool> by_eye = false;
    bool touched = false;  // touched_mutex_: it is in touched_
  };
  using Watches = std::unordered_map<int, std::unique_ptr<Watch>>;
  enum class Armed : std::uint8_t { sleeps, cannot_be, ready };  // in the order of how soon to look again

  explicit EventPoll(link::UniqueFd kernel) : kernel_(std::move(kernel)) {}
  void touch(Watch& watch);
  void wake_sleeper();
  // mutex_ held in all below.
  int control_plain(int operation, int fd, const epoll_event* event);
  int control_socket(int operation, SocketPtr socket, const epoll_event* event);
  void drop(Watches::iterator found);
  void look_at(Watch& watch);  // by eye, from now on
  void take_touched();
  std::uint32_t ready(Watch& watch);  // what is to be told
  std::size_t look(std::span<epoll_event> events);
  bool reaches_kernel(Watch& watch);
  Armed arm(Watch& watch);
  Armed arm_all();
  std::size_t sort_out(std::span<const epoll_event> raised, std::span<epoll_event> events);
  // `hold` is let go of while the kernel is asked.
  Result<std::size_t> ask_kernel(std::unique_lock<std::mutex>& hold, std::span<epoll_event> events,
                                 int timeout_ms);
  Result<std::size_t> look_everywhere(std::unique_lock<std::mutex>& hold, std::span<epoll_event> events);
  Result<std::size_t> sleep(std::unique_lock<std::mutex>& hold, std::span<epoll_event> events,
                            int timeout_ms);
  void hand_over();

  const link::UniqueFd kernel_;
  link::UniqueFd wake_;  // an eventfd in the kernel's set
  std::mutex mutex_;
  Watches watches_;
  std::unordered_map<int, epoll_data_t> plain_;
  std::vector<Watch*> by_eye_;  // the next to look at first
  unsigned waits_since_kernel_ = 0;

  std::mutex touched_mutex_;
  std::vector<Watch*> touched_;
  // Threads that sleep or are about to. Raised before the last look at touched_, read after something was put
  // there, with touched_mutex_ between: one of the two sees the other.
  std::atomic<int> sleepers_ = 0;
  std::atomic<bool> closed_ = false;
};

}  // namespace weir::rsocket
