// An epoll set of the program. Its descriptor is the kernel's. From the first engaged connection on, the set
// also holds the socket of a waiter, so that a peer that writes by RDMA wakes a thread that sleeps in the
// kernel, even if this set is part of another set or of a poll(). With a connection to another host it also
// holds the descriptor for what comes from there (far_arrivals.hpp).
//
// While a member may use its ring, we keep the program's interest, and changing it takes no system call. The
// kernel has a sentinel for it instead: it reports each change of the socket once, and which of them the
// program is told is decided here. If a level must be known that no report proves, the kernel is asked
// (event_set_wait.cpp). The kernel gets the program's own interest back when the sentinel would not do: the
// set is watched itself, a process is forked, the member's number is closed, or it is on TCP for good. For
// such members we report what comes by the ring and the kernel reports the rest.
//
// Threading: any thread. `mutex_` is taken before a connection's gates, never inside.
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sockets/calls/cancellation.hpp"
#include "sockets/calls/held_signals.hpp"
#include "sockets/calls/interruption.hpp"
#include "sockets/ready_list.hpp"
#include "sockets/settings.hpp"
#include "sockets/spin.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {

class Connection;
class FarArrivals;

class EventSet {
 public:
  explicit EventSet(int fd) : fd_(fd), budget_(settings().spin) {}

  int control(int operation, int fd, epoll_event* event);
  int wait(epoll_event* events, int most, Timeout timeout, const sigset_t* mask);
  void nested();  // somebody waits on this set's own descriptor
  // Another descriptor of the set. closed(): true if it was the last one; else the set works on by `other`.
  void copied() { ++copies_; }
  bool closed(int fd, const std::function<int()>& other);
  void close();      // the set is closed, and this object with it
  void hand_back();  // the program's calls on it go straight to the kernel from now on
  void become_childs();
  // The kernel gets the program's interest back: of all members, before a fork, or of this number, before its
  // close, or of a connection that goes on without us.
  void interest_to_kernel();
  static void interest_to_kernel_everywhere(Connection& connection, std::optional<int> fd = std::nullopt);
  // For every set that holds the connection: it has just engaged, or its last descriptor is about to be
  // closed. Until then the kernel keeps a member whose number is closed, and so do we.
  static void engaged_everywhere(Connection& connection);
  static void forget_everywhere(Connection& connection);

 private:
  // As the kernel's: a number alone may by now belong to something else.
  struct Key {
    Connection* connection;
    int fd;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return std::hash<Connection*>{}(key.connection) ^ static_cast<std::size_t>(key.fd);
    }
  };
  struct Member : ReadyLink {
    Member(int number, Connection* its) : fd(number), connection(its) {}
    int fd;
    Connection* connection;
    std::uint32_t wanted = 0;  // as the program asked
    epoll_data_t data{};
    std::uint32_t bit = 0;
    bool engaged = false;
    bool disabled = false;  // a one-shot interest that has fired
    // By sentinel only.
    std::uint32_t sentinel = 0;  // its number in the kernel's events; 0: the kernel has `wanted`
    std::uint32_t fresh = 0;     // reported by the kernel and not yet looked at
    bool changed = false;        // added or changed: an edge, too, reports what is there already
    bool rung = false;           // the peer rang, so there is an edge if the ring has something
    bool removed = false;        // by the program; the sentinel stays, in case it is added again
  };

  // Event data of the waiter's socket and of arrivals; no program's pointer or descriptor has these values.
  static constexpr std::uint64_t bell_data = 0x7765'6972'2062'656c;
  static constexpr std::uint64_t arrivals_data = 0x7765'6972'2066'6172;
  static constexpr std::uint64_t sentinel_data = 0x7765'6972'0000'0000;
  // Wakes a thread that waits on the set and says nothing of any member.
  static constexpr std::uint32_t no_members_bit = most_members - 1;
  // So many kernel's events after one that a ring had from another CPU, looking at rings is useless.
  static constexpr unsigned max_kernels_events = 16;
  static constexpr std::uint32_t max_sentinel = 0x2000'0000;  // below the low words of the above

  void forget(const Key& key);
  void engaged(const Key& key);
  Member* member(const Key& key);
  bool may_have_sentinel(const Member& member, std::uint32_t wanted) const;
  void begin_sentinel(Member& member);
  void end_sentinel(Member& member);
  bool take_report(const epoll_event& event);
  std::optional<int> control_by_sentinel(int operation, Member& member, const epoll_event* event);
  void forget_if_removed(const Key& key);
  void forget_removed_elsewhere(Connection& connection);
  void find_by_data(Member& member);
  void lose_by_data(const Member& member);
  void engage(Member& member);
  std::uint32_t take_bit(Member& member);
  void give_bit(Member& member);
  void mark_ready(Member& member);
  int collect(std::span<epoll_event> into);
  // Events of a member, and those of which only the kernel knows whether they hold.
  struct Readiness {
    std::uint32_t events = 0, unsure = 0;
    bool by_ring = false;
  };
  class Questions;
  Readiness ready_beside_kernel(Member& member) const;
  Readiness ready_by_sentinel(Member& member) const;
  epoll_event report(Member& member, const Readiness& now);
  bool looking_pays() const { return turn_.kernels_events < max_kernels_events; }
  bool is_kernels_turn();
  int kernel_then_rings(epoll_event* events, int most);
  int kernel_wait(epoll_event* events, int most, int timeout_ms, const sigset_t* mask);
  int clean(epoll_event* events, int count);
  int append(epoll_event* events, int have, int most);
  class Sleeper;
  struct Sleep {
    std::optional<timespec> limit;  // none: time is up
    bool for_ever;
    const sigset_t* mask;
  };
  int sleep(epoll_event* events, int most, const Sleep& how, const Uncancelled& call);
  bool idle();
  void pass_on_wake();
  void watch_arrivals(const Connection& connection);

  std::atomic<int> fd_;
  int copies_ = 1;
  SectionMutex mutex_;
  std::unordered_map<Key, std::unique_ptr<Member>, KeyHash> members_;
  // Those of which the kernel reports the program's own data: engaged ones, and one-shots.
  std::unordered_map<std::uint64_t, Member*> by_data_;
  std::unordered_map<std::uint32_t, Member*> by_sentinel_;
  std::uint32_t last_sentinel_ = 0;
  std::vector<std::vector<Member*>> by_bit_;  // several share a bit if there are more than bits
  std::uint32_t next_shared_bit_ = 0;
  ReadyList<Member> ready_;  // whose rings may have something; a reported one goes behind the others
  std::unique_ptr<Waiter> waiter_;
  FarArrivals* arrivals_ = nullptr;  // also in the set, if it has a connection to another host
  int engaged_ = 0, sleepers_ = 0;
  bool nested_ = false;
  bool took_wake_ = false;  // this thread read the waiter's event, which may have been meant for others
  // When the kernel is asked before the rings, which have something.
  struct KernelsTurn {
    unsigned looks = 0;
    bool was_full = false;           // the rings had as many events as there was room for, or more
    bool had = false;                // the latest look at the kernel's events found some
    std::size_t since = 0;           // events of rings since then
    PollBudget::TimePoint latest{};  // that look
    bool new_sentinel = false;       // it has a report that must come before what rings have
    unsigned kernels_events = max_kernels_events;  // since a ring had something from another CPU
  } turn_;
  PollBudget budget_;
};

}  // namespace weir::sockets
