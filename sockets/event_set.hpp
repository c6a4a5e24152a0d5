// An epoll set of the program. Its descriptor is the kernel's. From the first engaged connection on, the set
// also holds the socket of a waiter, so that a peer that writes by RDMA wakes a thread that sleeps in the
// kernel, even if this set is part of another set or of a poll(). With a connection to another host it also
// holds the descriptor for what comes from there (far_arrivals.hpp).
//
// We keep level-triggered, edge-triggered and one-shot interest for bytes that come by a ring. The kernel
// keeps it for everything else, and it always reports room to write.
//
// Threading: any thread. `mutex_` is taken before a connection's gates, never inside.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "sockets/held_signals.hpp"
#include "sockets/interruption.hpp"
#include "sockets/settings.hpp"
#include "sockets/spin.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {

class Connection;
class FarArrivals;

class EventSet {
 public:
  explicit EventSet(int fd) : fd_(fd), spin_(settings().spin) {}

  int control(int operation, int fd, epoll_event* event);
  int wait(epoll_event* events, int most, Timeout timeout, const sigset_t* mask);
  void nested();     // somebody waits on this set's own descriptor
  void close();      // the set is closed, and this object with it
  void hand_back();  // the program's calls on it go straight to the kernel from now on
  void become_childs();
  // For every set that holds the connection: it has just engaged, or a descriptor of it is about to be
  // closed.
  static void engaged_everywhere(Connection& connection);
  static void forget_everywhere(Connection& connection, int fd);

 private:
  struct Member {
    int fd;
    Connection* connection;
    std::uint32_t wanted;  // as the program asked
    epoll_data_t data;
    std::uint32_t bit = 0;
    bool engaged = false;
    bool disabled = false;  // a one-shot interest that has fired
    bool in_ready = false;
  };

  void forget(int fd);
  void engaged(int fd);  // the connection of that member
  void engage(Member& member);
  std::uint32_t take_bit(Member& member);
  void give_bit(Member& member);
  void mark_ready(Member& member);
  int collect(std::span<epoll_event> into);
  int kernel_wait(epoll_event* events, int most, int timeout_ms, const sigset_t* mask);
  int clean(epoll_event* events, int count);
  int append(epoll_event* events, int have, int most);
  bool idle();
  void pass_on_wake();
  void watch_arrivals(const Connection& connection);

  const int fd_;
  SectionMutex mutex_;
  std::unordered_map<int, std::unique_ptr<Member>> members_;
  std::unordered_map<std::uint64_t, Member*> by_data_;  // engaged ones
  std::vector<std::vector<Member*>> by_bit_;            // several share a bit if there are more than bits
  std::uint32_t next_shared_bit_ = 0;
  std::vector<Member*> ready_;
  std::unique_ptr<Waiter> waiter_;
  FarArrivals* arrivals_ = nullptr;  // also in the set, if it has a connection to another host
  int engaged_ = 0, sleepers_ = 0;
  bool nested_ = false;
  bool took_wake_ = false;     // this thread read the waiter's datagram, which may have been meant for others
  bool looking_pays_ = false;  // the last successful look found something from another CPU in a ring
  unsigned looks_ = 0;
  SpinPolicy::TimePoint kernel_look_{};  // the latest look at the kernel's events
  SpinPolicy spin_;
};

}  // namespace weir::sockets
