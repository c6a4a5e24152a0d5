// One TCP connection of the program, from its creation to its close: counts what the program does with
// it and changes its carrier.
//
// A connection has three lives. *Observed*: the program's calls go to the kernel unchanged and are counted.
// *Agreeing*: after some calls the service thread looks for the peer and connects a queue pair
// (agreement.cpp). *Engaged*: both ends can change carriers, and the program's calls come here; calls that we
// make to the kernel do not block. An engaged connection may be on TCP for good: `record().stays` says why.
//
// Threading: any thread. A direction's gate guards its positions; the service thread holds `agreement_`.
// Objects are never freed, only reused, so a thread may look at one while another thread closes it
// (`Use` in connection_objects.hpp).
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
#include "sockets/calls/cancellation.hpp"
#include "sockets/calls/held_signals.hpp"
#include "sockets/calls/kernel_events.hpp"
#include "sockets/device.hpp"
#include "sockets/far_end.hpp"
#include "sockets/gate.hpp"
#include "sockets/held_bytes.hpp"
#include "sockets/reason.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {

// Lies in memory shared with forked children.
struct Record {
  std::atomic<std::uint32_t> taken;
  GateWord send_gate, receive_gate;
  EndState end;
  std::atomic<std::uint32_t> holders;  // processes that have the connection open
  std::atomic<std::uint32_t> stays;    // a Reason: why it is on TCP for good
};

class EventSet;

class Connection final : public FarEnd {
 public:
  enum class Life : std::uint32_t { unused, observed, agreeing, ready, engaged };

  Life life() const { return life_.load(std::memory_order_acquire); }
  bool engaged() const { return life() == Life::engaged; }
  // Nothing is left to observe: the program's calls go straight to the kernel.
  bool plain() const { return !engaged() && stays() != Reason::none; }
  Reason stays() const { return static_cast<Reason>(record_->stays.load(std::memory_order_relaxed)); }

  // For an engaged connection. Returns what the system call would: bytes, or -1 with errno. `flags` are
  // those of recv() and send().
  ssize_t receive(int fd, std::span<const iovec> into, int flags);
  ssize_t send(int fd, std::span<const iovec> from, int flags);
  // Whether something can be read that the kernel does not know of. Room to write is always the
  // kernel's to report: from a full ring we change to TCP, which buffers more. `looked`: the caller has
  // just looked at arrivals().
  bool readable(bool looked = false);
  bool sends_by_ring() const;
  bool gets_by_ring() const;
  // Room for at least one byte, without asking the kernel.
  bool has_room() const { return sends_by_ring() && !send_blocked_.load(std::memory_order_relaxed); }
  // Polling the ring is useless: the peer that would write to it needs this CPU.
  bool peer_on_this_cpu() const;
  std::uint64_t unread();  // bytes in the ring and held
  std::uint64_t unsent() const;

  // For an observed connection: what a system call of the program did.
  void note_received(std::span<const iovec> into, std::size_t bytes);
  void note_sent(std::span<const iovec> from, std::size_t bytes);
  // After each call on an observed connection: begins to look for a peer when it is time, engages when all is
  // ready. Returns what the caller must do for it.
  enum class Next {
    nothing,
    seek_peer,          // hand it to the service
    seek_for_too_long,  // the service gives up if it has looked for too long
    update_sets         // it is engaged now, which sets that hold it must know
  };
  Next consider(int fd);

  // Returns to TCP for good. If the descriptor leaves our sight, this also fetches back the bytes that the
  // peer sent and nobody has read; it takes a round trip to the peer, at most a second. Otherwise those bytes
  // are still read from the ring.
  void leave(int fd, Reason why);
  // Stops RDMA for good, as leave(); before the connection is engaged it only records the reason.
  void stay(int fd, Reason why);
  // Call before and after the program's shutdown() of sending: what is sent from then on goes to the kernel,
  // which refuses it. Before, so that the peer finds the stream's last byte; after, because another thread
  // may have engaged the connection and entered the ring meanwhile.
  void end_sending(int fd);
  // Call before the kernel tells the peer of the end, by close(), shutdown() or exit. Bytes in a ring to
  // another host arrive before that, or the connection is reset. `all`: we will not receive either.
  void part(int fd, bool all);
  bool is_far() const { return far_; }
  // For an engaged connection to another host: what to look at and sleep on. Otherwise null.
  FarArrivals* arrivals() const { return far_ && !off_link() && link_ ? link_->arrivals() : nullptr; }
  // Service thread, now and then: returns to TCP over a path that RDMA packets have lost. True: call again
  // soon, the peer's NIC has something to acknowledge.
  bool watch_path();
  // Between hosts, before fork(): both directions leave the ring for good, at known positions. The child
  // reads the rest of the ring in memory that it shares, and then TCP.
  void leave_for_child(int fd);
  // A send had to wait until the peer knew where TCP goes on, and now the peer knows. True once.
  bool may_send_again();
  // Before the kernel's close of this process's last descriptor, or, if not `open`, after a close that we did
  // not see.
  void close(int fd, bool open);
  // One of the program's descriptors for it; -1: it has not looked for a peer yet.
  int descriptor() const { return fd_.load(); }

  // Registers who to wake when this end changes.
  bool watch(std::uint32_t watcher) { return sockets::watch(place_.mine(), watcher); }
  void unwatch(std::uint32_t watcher) { sockets::unwatch(place_.mine(), watcher); }
  Record& record() { return *record_; }
  const Record& record() const { return *record_; }
  std::atomic<std::uint32_t>& users() { return users_; }

  struct Registration {
    EventSet* set;
    int fd;
  };
  SectionMutex& registrations_mutex() { return in_sets_.mutex; }
  std::vector<Registration>& registrations() { return in_sets_.registrations; }
  KernelEvents& kernel_events() { return in_sets_.kernel_events; }
  // TCP had no room when it was last asked for some, so the kernel will report when it has.
  std::atomic<bool>& lacks_room() { return in_sets_.lacks_room; }
  // How many sets keep its registration in the kernel after the program has removed it.
  std::atomic<int>& removed_members() { return in_sets_.removed_members; }

 private:
  friend class ConnectionObjects;
  friend class Connections;
  friend class Service;

  void renew(Record& record, bool accepted);  // it now serves another connection
  void become_childs();                       // in a child of fork()
  void keep_words();                          // copies a far connection's words, before fork()

  // agreement.cpp, in the service thread
  enum class Step { claim, meet, connect, wait_for_peer, far, over };
  bool agree(std::uint32_t service);  // true: the peer is on another host and must be sought there
  void reconsider();
  void list_reason();  // in the table, why it stays on TCP, also if it has not engaged
  void answer_leaving_peer();
  void leave_as_asked();
  void end();  // closed: frees what it holds
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

  bool engage(int fd);
  bool leaves_process(Reason why) const;
  enum class Return : std::uint32_t { none, asked, done };
  bool off_link() const { return foreign_ || return_.state.load(std::memory_order_relaxed) == Return::done; }
  bool ask_return(int fd);
  bool take_return(int fd);
  bool await_return(int fd);
  // With the send gate held, which leave() would wait for.
  void keep_to_tcp(int fd, Reason why);
  bool may_enter_ring(int fd, const Outgoing& out);
  Outgoing outgoing();
  Incoming incoming();
  bool hand_back(int fd);  // send gate held
  bool resend(int fd, std::uint64_t from);
  void reset(int fd, Reason why = Reason::nonsense);
  void notify_peer();  // words of this end have changed
  using Known = bool (Link::*)() const;
  bool settle(std::chrono::microseconds longest, Known known);
  bool ends_without_word();
  ssize_t send_by_ring(Outgoing& out, std::span<const iovec> from, std::size_t skip);
  bool wait(int fd, bool sends, int& error, const Uncancelled& call);
  ssize_t receive_ring(Incoming& in, std::span<const iovec> into, std::size_t skip, std::size_t bytes,
                       bool peek);
  ssize_t receive_held(Incoming& in, std::span<const iovec> into, std::size_t skip, std::size_t bytes,
                       bool peek);
  ssize_t receive_tcp(Incoming& in, int fd, std::span<const iovec> into, std::size_t skip, std::uint64_t most,
                      int flags);
  void announce_ring(const Incoming& in);
  void note_cpu();
  ssize_t receive_as_kernel(int fd, std::span<const iovec> into, int flags, Reason why,
                            const Uncancelled& call);
  ssize_t peek_all(int fd, std::span<const iovec> into, int flags, const Uncancelled& call);
  ssize_t receive_as(int fd, std::span<const iovec> into, int flags, const Uncancelled& call);
  ssize_t receive_now(int fd, std::span<const iovec> into, std::size_t skip, int flags);
  ssize_t send_as_child(int fd, std::span<const iovec> from, std::size_t skip, int flags);
  ssize_t send_now(int fd, std::span<const iovec> from, std::size_t skip, int flags);

  std::atomic<Life> life_{Life::unused};
  std::atomic<std::uint32_t> users_{0};
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<bool> closed_{false};
  std::atomic<int> fd_{-1};  // descriptor()
  bool accepted_ = false;    // the other end connected
  bool far_ = false;         // the peer is on another host
  bool foreign_ = false;     // the link belongs to the parent
  struct Returning {
    std::atomic<Return> state{Return::none};  // written with both gates held
    std::uint64_t arrived = 0;                // by the ring, as the peer was told
  } return_;
  std::uint32_t copies_ = 0;  // the number of its descriptors in this process
  Record* record_ = nullptr;
  FirstBytes sent_first_, received_first_;
  HeldBytes held_;         // receive gate
  int pending_error_ = 0;  // the socket's error, reported after the ring's last byte; receive gate
  std::atomic<bool> send_blocked_{false};
  bool lost_ = false;               // bytes to be read are lost; receive gate
  std::uint64_t since_change_ = 0;  // bytes sent; send gate
  AfterFull after_full_;            // send gate

  std::uint64_t peer_ring_bytes_ = 0;
  std::chrono::steady_clock::time_point since_{};  // when it began to look for a peer

  SectionMutex agreement_;
  Step step_ = Step::claim;
  Ends ends_;
  bool has_place_ = false;
  Table::Place place_{};
  std::unique_ptr<Entry> words_;  // a child's own copy
  std::unique_ptr<Link> link_;
  NearLink* near_link_ = nullptr;  // link_, if it is on this host

  // What epoll sets know of it.
  struct InSets {
    SectionMutex mutex;
    std::vector<Registration> registrations;
    std::atomic<int> removed_members{0};
    KernelEvents kernel_events;
    std::atomic<bool> lacks_room{false};
  } in_sets_;
};

}  // namespace weir::sockets
