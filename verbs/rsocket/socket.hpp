// What the C interface sees of an rsocket, whichever kind it is.
//
// Threading: every function from any thread. Functions that return int give 0 or an errno.
#pragma once

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <vector>

#include "verbs/rsocket/interruption.hpp"
#include "verbs/rsocket/options.hpp"
#include "verbs/rsocket/pieces.hpp"
#include "verbs/rsocket/watchers.hpp"

namespace weir::rsocket {

class Socket;
using SocketPtr = std::shared_ptr<Socket>;
template <class T>
using Result = std::expected<T, int>;  // the error is an errno

class Socket {
 public:
  virtual ~Socket() = default;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  virtual int descriptor() const = 0;  // its number; open as long as the socket is not destroyed
  virtual int bind(const sockaddr* address, socklen_t size) = 0;
  virtual int listen(int) { return EOPNOTSUPP; }
  virtual Result<SocketPtr> accept() { return std::unexpected(EOPNOTSUPP); }
  virtual int connect(const sockaddr* address, socklen_t size) = 0;
  virtual int shut_down(int how) = 0;
  virtual void close() = 0;  // no call after it; those that wait end with EBADF

  virtual Result<std::size_t> send(Pieces from, int flags, const sockaddr* to, socklen_t to_size) = 0;
  // `from`: who sent it, if it is not null.
  virtual Result<std::size_t> receive(Pieces into, int flags, sockaddr_storage* from) = 0;

  virtual int local_name(sockaddr_storage& name) = 0;
  virtual int peer_name(sockaddr_storage& name) = 0;
  virtual int set_option(int level, int name, const void* value, socklen_t size) = 0;
  virtual int get_option(int level, int name, void* value, socklen_t* size) = 0;
  int status_flags();
  void set_status_flags(int flags);

  virtual Result<std::uint64_t> map(void*, std::size_t, int, std::int64_t) {
    return std::unexpected(EOPNOTSUPP);
  }
  virtual int unmap(void*, std::size_t) { return EOPNOTSUPP; }
  virtual Result<std::size_t> write_mapped(Pieces, std::uint64_t, int) { return std::unexpected(EOPNOTSUPP); }

  // For rpoll: which of `events`, and POLLERR and POLLHUP, hold now.
  short ready(short events);
  // Between these a change of the socket wakes `waiter`, or one of the descriptors added to `others`. Ask
  // ready() once more before sleeping.
  void begin_sleep(Waiter& waiter, std::vector<pollfd>& others);
  void end_sleep(Waiter& waiter);

  // For event polls: between these `watcher` is told of every change that somebody saw. Nobody sees those
  // that the NIC or the kernel raise: ready() looks for them, or one of the descriptors that arm() gives
  // becomes readable, once.
  void watch(Watcher& watcher);
  void unwatch(Watcher& watcher);
  struct Armed {
    std::vector<pollfd> descriptors;
    unsigned generation;  // the descriptors of another one are closed, and their numbers may be others' now
  };
  Armed arm();
  void silence();  // makes those descriptors quiet, until they are armed again

 protected:
  explicit Socket(int family) : family_(family) {}
  // mutex_ held in those that begin with locked_.
  virtual short locked_ready(short events) = 0;
  // Sets the alarms, and adds the descriptors that ring. Those who slept on one that rang already are told,
  // as it is quiet now; so the caller becomes a watcher afterwards.
  virtual void locked_prepare_sleep(std::vector<pollfd>& others) = 0;
  virtual void locked_silence() = 0;
  bool locked_blocks(int flags) const;
  // Lets go of the mutex until `done()`, trying a while before it sleeps. EINTR: a signal came, and calls are
  // not restarted for it (interruption.hpp).
  template <class Done>
  int locked_wait(std::unique_lock<std::mutex>& hold, Done done);
  template <class Done>
  int locked_wait_for(std::unique_lock<std::mutex>& hold, int limit_ms, Done done);  // EAGAIN: time is up

  const int family_;
  std::mutex mutex_;
  WatchList watchers_;
  Options options_;
  int status_flags_ = 0;
  unsigned generation_ = 0;  // of the descriptors that locked_prepare_sleep() gives
};

// Tries a while without sleeping: `try_once` says whether it is done. True: it was.
template <class TryOnce>
bool try_a_while(TryOnce try_once, int tries_between_yields = 100);

// An address as `family` says it: an IPv4 one is mapped for an IPv6 socket (RFC 4291 2.5.5.2).
sockaddr_storage in_family(const sockaddr_storage& address, int family);
socklen_t size_of_family(int family);

template <class TryOnce>
bool try_a_while(TryOnce try_once, int tries_between_yields) {
  // polling_time (rsocket(7)) of trying, in which the processor is offered to others: the peer may need this
  // one.
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(Defaults::get().polling_us);
  do {
    for (int i = 0; i < tries_between_yields; ++i) {
      if (try_once()) return true;
    }
    ::sched_yield();
  } while (std::chrono::steady_clock::now() < end);
  return try_once();
}

template <class Done>
int Socket::locked_wait(std::unique_lock<std::mutex>& hold, Done done) {
  return locked_wait_for(hold, -1, done);
}

template <class Done>
int Socket::locked_wait_for(std::unique_lock<std::mutex>& hold, int limit_ms, Done done) {
  using Clock = std::chrono::steady_clock;
  if (done()) return 0;
  const auto end = Clock::now() + std::chrono::milliseconds(limit_ms);
  const bool soon = try_a_while([&] {
    hold.unlock();
    hold.lock();
    return done();
  });
  if (soon) return 0;
  for (;;) {
    int left_ms = -1;
    if (limit_ms >= 0) {
      left_ms =
          static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count());
      if (left_ms <= 0) return EAGAIN;
    }
    Waiter& waiter = Waiter::mine();
    waiter.clear();
    std::vector<pollfd> others;
    locked_prepare_sleep(others);
    int error = 0;
    {
      const Listed listed(watchers_, waiter, hold);
      if (done()) return 0;
      hold.unlock();
      if (waiter.sleep(others, left_ms) < 0) error = errno;
      hold.lock();
    }
    if (done()) return 0;
    if (error != 0 && (error != EINTR || !handlers_restart_calls())) return error;
  }
}

}  // namespace weir::rsocket
