// An epoll set of the program. Its descriptor is the kernel's; beside what the program put there it holds,
// from the first engaged connection on, the socket of a waiter, so that a peer that writes by RDMA wakes who
// sleeps in the kernel, also where this set is part of another set or of a poll(). With a connection to
// another host it holds the descriptor of what comes from there (far_arrivals.hpp), too.
//
// Level-triggered, edge-triggered and one-shot interest are kept for what comes by a ring; what comes by the
// kernel is the kernel's. Room to write is always the kernel's to tell.
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
  void engaged(int fd);  // that descriptor's connection is engaged from now on
  void nested();         // somebody waits for this set's own descriptor
  void close();          // the set is closed; this object is gone
  void become_childs();
  static void forget_everywhere(Connection& connection, int fd);

 private:
  struct Member {
    int fd;
    Connection* connection;
    std::uint32_t wanted;  // as the program said
    epoll_data_t data;
    std::uint32_t bit = 0;
    bool engaged = false;
    bool disabled = false;  // one shot, and it was
    bool in_ready = false;
  };

  void forget(int fd);
  void engage(Member& member);
  void mark_ready(Member& member);
  int collect(std::span<epoll_event> into);
  int kernel_wait(epoll_event* events, int most, int timeout_ms, const sigset_t* mask);
  int clean(epoll_event* events, int count);
  int append(epoll_event* events, int have, int most);
  bool idle();
  void watch_arrivals(const Connection& connection);

  const int fd_;
  SectionMutex mutex_;
  std::unordered_map<int, std::unique_ptr<Member>> members_;
  std::unordered_map<std::uint64_t, Member*> by_data_;  // engaged ones
  std::vector<Member*> by_bit_, ready_;
  std::unique_ptr<Waiter> waiter_;
  FarArrivals* arrivals_ = nullptr;  // in the set, too: it has a connection to another host
  int engaged_ = 0, sleepers_ = 0;
  bool nested_ = false;
  bool looking_pays_ = false;  // a ring had something when we looked last with success, from another CPU
  unsigned looks_ = 0;
  SpinPolicy spin_;
};

}  // namespace weir::sockets
