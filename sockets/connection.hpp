// One TCP connection of the program, from its birth to its close: counts what the program does with it,
// changes carriers.
//
// Three lives. *Observed*: the program's calls go to the kernel as they are, and are counted. *Agreeing*:
// after a few of them the service thread looks for the peer and connects a queue pair (agreement.cpp).
// *Engaged*: both ends can change carriers; the program's calls come here, and the kernel's are made without
// blocking in between. An engaged connection may be on TCP for good: `record().stays` says why.
//
// Threading: any thread. A direction's gate guards its positions; `agreement_` is the service thread's.
// Objects are never freed, only used again, so that a thread may look at one that another thread closes
// (use.hpp).
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "sockets/after_full.hpp"
#include "sockets/beginning.hpp"
#include "sockets/device.hpp"
#include "sockets/far_end.hpp"
#include "sockets/gate.hpp"
#include "sockets/held_bytes.hpp"
#include "sockets/held_signals.hpp"
#include "sockets/reason.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {

// In memory that forked children share.
struct Record {
  std::atomic<std::uint32_t> taken;
  GateWord send_gate, receive_gate;
  EndState end;
  std::atomic<std::uint32_t> holders;  // processes that have it open
  std::atomic<std::uint32_t> stays;    // a Reason: on TCP for good
};

class EventSet;

class Connection final : public FarEnd {
 public:
  enum class Life : std::uint32_t { unused, observed, agreeing, ready, engaged };

  Life life() const { return life_.load(std::memory_order_acquire); }
  bool engaged() const { return life() == Life::engaged; }
  // Nothing of it is of interest any more: the program's calls are the kernel's.
  bool plain() const { return !engaged() && stays() != Reason::none; }
  Reason stays() const { return static_cast<Reason>(record_->stays.load(std::memory_order_relaxed)); }

  // A system call's result: bytes, or -1 and errno. Those of an engaged connection; `flags` as of recv() and
  // send().
  ssize_t receive(int fd, std::span<const iovec> into, int flags);
  ssize_t send(int fd, std::span<const iovec> from, int flags);
  // Something can be read that the kernel does not know of. Room to write is the kernel's to tell: a full
  // ring is left for TCP, which has more.
  // `looked`: the caller has looked at arrivals() just now.
  bool readable(bool looked = false);
  bool sends_by_ring() const;
  bool gets_by_ring() const;
  // To look at the ring is in vain: whoever would write to it needs this CPU.
  bool peer_on_this_cpu() const;
  std::uint64_t unread();  // bytes, in the ring and held
  std::uint64_t unsent() const;

  // Observed: what a system call of the program did.
  void note_received(std::span<const iovec> into, std::size_t bytes);
  void note_sent(std::span<const iovec> from, std::size_t bytes);
  // After each call of an observed one: asks for a peer when it is time, engages when all is ready.
  void consider(int fd);

  // Back to TCP, for good. Where the descriptor leaves our sight, also the bytes that the peer sent and
  // nobody has read, which takes a round trip to the peer, at most a second; else these are still read from
  // the ring.
  void leave(int fd, Reason why);
  // Not by RDMA from now on, as leave(); before it is engaged it only says so.
  void stay(int fd, Reason why);
  // Before the kernel says to the peer that this is the end: by close(), shutdown() or exit. What goes by a
  // ring to another host arrives before that, or the connection is reset. `all`: no more is received, either.
  void part(int fd, bool all);
  bool is_far() const { return far_; }
  // Of an engaged one whose peer is on another host: what to look at, and to sleep on. Else null.
  FarArrivals* arrivals() const { return far_ && !foreign_ && link_ ? link_->arrivals() : nullptr; }
  // Between hosts, before fork(): both directions leave the ring for good, and where they did is known, so
  // that a child reads what is left of it in the memory that it shares, and then TCP.
  void leave_for_child(int fd);
  // A send found that the peer does not know yet where TCP goes on, and now it does. Once.
  bool may_send_again();
  // Before the kernel's close, or, not `open`, after one that we did not see. `last`: no copy of the
  // descriptor is left here.
  void close(int fd, bool last, bool open);

  // The number of this end as others are to wake it.
  bool watch(std::uint32_t watcher) { return sockets::watch(place_.mine(), watcher); }
  void unwatch(std::uint32_t watcher) { sockets::unwatch(place_.mine(), watcher); }
  Record& record() { return *record_; }
  const Record& record() const { return *record_; }
  std::atomic<std::uint32_t>& users() { return users_; }

  struct Registration {
    EventSet* set;
    int fd;
  };
  SectionMutex& registrations_mutex() { return registrations_mutex_; }
  std::vector<Registration>& registrations() { return registrations_; }

 private:
  friend class Connections;
  friend class Service;

  void renew(Record& record, bool accepted);  // it is another connection's from now on
  void become_childs();                       // in a child of fork()
  void keep_words();                          // of a connection to another host, as they are before fork()

  // agreement.cpp, in the service thread
  enum class Step { claim, meet, connect, wait_for_peer, far, over };
  bool agree(std::uint32_t service);  // true: its peer is on another host, and is to be sought there
  void reconsider();
  void answer_leaving_peer();
  void leave_as_asked();
  void end();  // closed: gives back what it has
  bool claim(std::uint32_t service);
  bool meet();
  bool connect_link();
  bool mirrors_peer() const;
  // FarEnd
  const Ends& ends() const override { return ends_; }
  bool was_accepted() const override { return accepted_; }
  const Table::Place& place() const override { return place_; }
  Conversation conversation(hash::SipKey key) const override;
  void far_linked(std::unique_ptr<Link> link, std::uint64_t peer_ring_bytes) override;
  void far_failed(Reason why) override;
  void give_up(Reason why);

  void engage(int fd);
  bool leaves_process(Reason why) const;
  bool may_enter_ring(int fd, const Outgoing& out);
  Outgoing outgoing();
  Incoming incoming();
  bool hand_back(int fd);  // send gate held
  void reset(int fd);
  void tell_peer();  // words of this end have changed
  using Known = bool (Link::*)() const;
  bool settle(std::chrono::microseconds longest, Known known);
  bool ends_without_word();
  ssize_t send_by_ring(Outgoing& out, std::span<const iovec> from, std::size_t skip);
  bool wait(int fd, bool sends, int& error);
  ssize_t receive_ring(Incoming& in, std::span<const iovec> into, std::size_t skip, std::size_t bytes,
                       bool peek);
  ssize_t receive_held(Incoming& in, std::span<const iovec> into, std::size_t skip, std::size_t bytes,
                       bool peek);
  ssize_t receive_tcp(Incoming& in, int fd, std::span<const iovec> into, std::size_t skip, std::uint64_t most,
                      int flags);
  void tell_of_ring(const Incoming& in);
  void note_cpu();
  ssize_t receive_now(int fd, std::span<const iovec> into, std::size_t skip, int flags);
  ssize_t send_as_child(int fd, std::span<const iovec> from, std::size_t skip, int flags);
  ssize_t send_now(int fd, std::span<const iovec> from, std::size_t skip, int flags);

  std::atomic<Life> life_{Life::unused};
  std::atomic<std::uint32_t> users_{0};
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<bool> closed_{false};
  std::atomic<int> fd_{-1};   // one of the program's descriptors of it
  bool accepted_ = false;     // the other end connected
  bool far_ = false;          // its peer is on another host
  bool foreign_ = false;      // its link is the parent's
  std::uint32_t copies_ = 0;  // descriptors of it in this process
  Record* record_ = nullptr;
  FirstBytes sent_first_, received_first_;
  HeldBytes held_;         // receive gate
  int pending_error_ = 0;  // of the socket, for after the ring's last byte; receive gate
  std::atomic<bool> send_blocked_{false};
  bool lost_ = false;               // what was to be read cannot be had; receive gate
  std::uint64_t since_change_ = 0;  // bytes sent; send gate
  AfterFull after_full_;            // send gate

  std::uint64_t peer_ring_bytes_ = 0;
  std::chrono::steady_clock::time_point since_{};  // it looks for a peer

  SectionMutex agreement_;
  Step step_ = Step::claim;
  Ends ends_;
  bool has_place_ = false;
  Table::Place place_{};
  std::unique_ptr<Entry> words_;  // a child's own
  std::unique_ptr<Link> link_;
  NearLink* near_link_ = nullptr;  // link_, on this host

  SectionMutex registrations_mutex_;
  std::vector<Registration> registrations_;
};

}  // namespace weir::sockets
