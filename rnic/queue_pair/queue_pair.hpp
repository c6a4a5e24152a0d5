// A queue pair: its send ring, the owner's side of its receive ring, its connection, and its state.
//
// The work is in these files, one a role:
//   queue_pair.cpp   modify, destroy; entering the error state
//   posting.cpp      WQEs into the send ring, and its doorbell
//   requester.cpp    executes send WQEs in order
//   parking.cpp      parks them (RNR, no response), tries them again, and gives up on them
//   responder.cpp    what the peer's NIC would do for an arriving operation, played by the initiator
//   datagram.cpp     the same two roles for UD
//   raw_packet.cpp   and for Ethernet frames
//   packets.cpp      instead of these two, where the peer is on another host (UC: unreliable_packets.cpp)
//   opened_queue_pair.cpp   XRC queue pairs that several processes have open
//   completer.cpp    turns finished sends into work completions
//
// What arrives is receive_side.hpp's.
//
// Locks, in order: send_lock_ or receive_lock(), then nothing else. poll_completions runs under the CQ's lock
// and takes neither. Nothing here blocks except wait_for_initiator(), which is bounded by the peer's current
// operation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <span>
#include <vector>

#include "rnic/memory/spin_lock.hpp"
#include "rnic/peer.hpp"
#include "rnic/queue_pair/completion_queue.hpp"
#include "rnic/queue_pair/pacer.hpp"
#include "rnic/queue_pair/qp_common.hpp"
#include "rnic/queue_pair/qp_config.hpp"
#include "rnic/queue_pair/queue_pair_state.hpp"
#include "rnic/queue_pair/receive_side.hpp"
#include "rnic/queue_pair/send_queue.hpp"
#include "rnic/queue_pair/shared_receive_queue.hpp"
#include "rnic/same_host/responder.hpp"

namespace weir::rnic {

class Adapter;
class Tracer;
struct ArrivedPacket;
struct EthernetFrame;
class DatagramPackets;
struct PacketPath;
namespace packet {
struct ResponderCounts;
}

// The longest a neighbour's operation can reasonably run: 2 GiB through the kernel.
inline constexpr std::uint64_t longest_operation_ns = 2'000'000'000;
// The longest that a move to ERR waits for one. It need not: receives are reported as flushed when the
// neighbour has left.
inline constexpr std::uint64_t longest_wait_in_error_ns = 5'000'000;

class QueuePair {
 public:
  QueuePair(Adapter&, std::uint32_t index, const QpConfig&);
  // An xrc_recv queue pair of another process, of that domain. Not valid() if there is none.
  QueuePair(Adapter&, PeerPtr home, Qpn number, std::uint64_t xrcd);
  ~QueuePair();
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  bool valid() const { return qp_.ctx != nullptr; }
  QpCounters& counters() { return qp_.counters; }
  Qpn qpn() const { return qp_.qpn; }
  const QpConfig& config() const { return qp_.config; }
  void set_cookie(void* cookie) { qp_.config.cookie = cookie; }
  QpState state() const { return qp_.state(); }
  // In sqd, and the request that it found under way is not yet over.
  bool draining() const { return draining_.load(std::memory_order_acquire); }
  QpAttributes attributes() const { return attributes_; }
  // xrc_recv: as whoever has it open set them last.
  QpAttributes shared_attributes() const;
  bool is_anothers() const { return home_ != nullptr; }
  // xrc_recv, ours: others have it open, so it is not to be destroyed. False: none has, and none can any
  // more.
  bool stays_open();
  void forget_opener(Slot dead);
  void tell_openers_of_fault(Fault);
  void initiator_gone(Slot);  // to one of another process

  // The caller has checked the transition (check_modify). Moving to rtr connects to the destination's
  // process. False: to reset, and after a bounded time the initiator was still inside an operation (its
  // process is stopped, say), which may yet write into our rings; then we are in err, and it may be tried
  // again.
  bool modify(QpState to, const QpAttributes&);

  // One work request at a time: append (may repeat), then ring the doorbell. The send lock is held from the
  // first append to ring_doorbell(); begin_posting/abort_posting serve ibv_wr_start/abort.
  void begin_posting() { send_lock_.lock(); }
  SendWqe* append(const SendRequest&, PostResult&);
  PostResult set_sges(SendWqe&, std::span<const Sge>);
  PostResult add_inline(SendWqe&, std::span<const std::byte> piece);
  void retract() { --sq_.tail; }
  void abort_posting();
  void ring_doorbell();

  // Receives: under receive_lock() from the first post_recv to recv_doorbell(), which publishes what was
  // written and kicks an initiator that waits for it.
  SpinLock& receive_lock() { return receive_side_.lock(); }
  PostResult post_recv(std::uint64_t wr_id, std::span<const Sge> sges) {
    return receive_side_.post(wr_id, sges);
  }
  void recv_doorbell() { receive_side_.doorbell(); }

  std::size_t poll_completions(CompletionQueue&, std::span<WorkCompletion>);
  std::size_t unpolled(const CompletionQueue&) const;  // what poll_completions() would find, unlimited
  // Ahead of poll_completions, under the CQ's lock too: brings the next CQE over from the core that wrote it.
  void prefetch_completion() const { receive_side_.prefetch(); }

  // A packet for us, of a batch; then, behind the batch, what it is answered with.
  void receive_packet(const ArrivedPacket&);
  void answer_packets();

  // The requester's retry entry: from poll, from a kick, from a timer. Returns false when nothing is parked
  // any more.
  bool resume();
  void peer_gone(Slot);
  void process_gone(std::uint64_t process);  // of another user, to which packets go
  // The WQEs of our SRQ whose completions stand in our ring, to be polled.
  void append_completed(std::vector<std::uint32_t>& wqes) const { receive_side_.append_completed(wqes); }
  void on_fault(Fault);  // a peer moved us to err
  void kick_initiator_if_parked() const { qp_.kick_initiator_if_parked(); }
  // Returns once the initiator's current operation is over, or it is dead. False: it was still inside after a
  // bounded time (its process is stopped, say); what it may touch must then stay where it is.
  bool wait_for_initiator(std::uint64_t longest_ns = longest_operation_ns) const;
  // The keys of the memory that a SEND which began already may fill; nullopt: not known, any.
  std::optional<std::vector<std::uint32_t>> receive_keys() { return receive_side_.keys(); }
  // Whoever plays our responder is inside an operation, and does not leave at once; it may be stopped there.
  bool initiator_inside() const {
    return valid() && !has_many_senders(qp_.config.type) && !initiator_leaves_at_once();
  }
  // Before it is destroyed: it answers nobody any more. Under the adapter's lock.
  void shut();
  // Behind that, and not under that lock, because it may take as long as wait_for_initiator(). Without it the
  // rings stay.
  void wait_after_shut() { initiator_left_ = wait_for_initiator(); }
  // Whoever plays our responder rang its last doorbell on that CPU.
  bool initiator_on(Cpu cpu) const { return qp_.ctx->initiator_cpu.load(std::memory_order_relaxed) == cpu; }
  // Whose process plays our responder.
  Slot initiator_slot() const { return initiator_slot_.load(std::memory_order_relaxed); }
  bool connected_to(const Peer& peer) const { return remote_.peer.get() == &peer; }
  void quiesce() {  // returns once no operation that began before is still running
    send_lock_.lock();
    unlock_sends();
  }

 private:
  enum class Park : std::uint8_t { none, rnr, no_response, late, contended, connecting, paced };

  // requester.cpp
  void execute();
  void execute_here();
  Outcome execute_one(SendWqe&);
  std::optional<WcStatus> prepare(SendWqe&, Gather&) const;
  std::optional<WcStatus> gather(SendWqe&, Gather&, ProtectionTable::Use) const;
  Outcome execute_local(SendWqe&);
  Outcome select_srq(Qpn srqn);
  Outcome reach_keeper();
  std::optional<WcStatus> check_reader(const SendWqe&, Gather&) const;
  void charge(const SendWqe&);
  void complete_send(SendWqe&, WcStatus);
  void fail_send(SendWqe&, WcStatus);
  void flush_sends();
  void drained();
  void connect_remote(HostPort::Wait);
  bool reconnect_if_stale();
  void note_likely_next();
  bool peer_waits_for(Cpu cpu);

  // packets.cpp
  friend class PacketSends;
  void open_packets();
  void set_packets(QpState to);
  void close_packets();
  std::shared_ptr<PacketPath> packets();
  std::uint32_t may_send_up_to() const;
  bool sends_packets() const;
  void execute_packets();
  void run_timer(std::uint64_t now_ns);
  bool resume_packets();
  void count_sends();
  void count_answers(PacketPath&, std::uint64_t sent, std::uint64_t again);
  void count_arrived(PacketPath&, const packet::ResponderCounts& now);
  Outcome send_unreliable(const SendWqe&, const Gather&);
  bool answers_by_packets() const { return packets_ != nullptr && qp_.config.type == QpType::rc; }
  void give_up_arriving();
  // From now on polls look for packets, until close_packets().
  void poll_packets();

  // parking.cpp
  bool receive_comes_soon();
  bool park(Park why);
  bool park_until_connected();
  bool must_wait_its_turn();
  // The next send WQE was begun, and is tried again until it is over.
  bool under_way() const { return parked_ != Park::none && parked_ != Park::paced; }
  void try_again_by_timer();
  void keep_addresses();
  std::optional<std::uint64_t> budget_ns(Park why) const;
  void unlock_sends();

  // datagram.cpp
  Outcome execute_datagram(SendWqe&, const Gather&);
  Outcome send_datagram(const SendWqe&, const Gather& payload, std::uint64_t process = 0);
  void receive_datagram(const ArrivedPacket&);
  void notify_sender(PacketPath&);
  struct Datagram;
  Datagram datagram_of(const SendWqe&, const Gather&) const;
  void deliver_datagram(const Datagram&, Peer&, std::uint32_t index);
  Outcome multicast(const SendWqe&, const Gather&);
  DatagramSlot* claim_datagram(Peer&, std::uint32_t index) const;
  static void publish_datagram(Peer&, std::uint32_t index, DatagramSlot&);

  // raw_packet.cpp
  Outcome execute_frame(SendWqe&, const Gather&);
  void deliver_frame(const EthernetFrame&, Peer&, std::uint32_t index);
  void receive_frame(std::span<const std::byte>, Peer&, std::uint32_t index);

  // completer.cpp
  std::size_t poll_sends(std::span<WorkCompletion>);

  // queue_pair.cpp
  enum class InitiatorLeft : bool { no, yes };
  InitiatorLeft answer_no_more(QpState to);
  bool modify_locked(QpState to, const QpAttributes&, InitiatorLeft);
  bool leave_for(QpState to);
  bool wait_for_datagram_senders() const;
  void attach();
  bool peer_gone_locked();
  void enter_error();
  bool initiator_leaves_at_once() const;
  void flush_everything(InitiatorLeft);
  bool flush_receives_once_left();
  void announce_unpolled();
  bool reset(InitiatorLeft);
  void begin_incarnation();

  // opened_queue_pair.cpp
  void close_opened();
  void note_initiator();

  Adapter& nic_;
  PeerPtr home_;  // whose segment it is in; nullptr: ours
  QpCommon qp_;
  ReceiveSide receive_side_;
  QpOpeners* openers_ = nullptr;  // xrc_recv
  QpAttributes attributes_;       // under send_lock_
  // Whose process plays our responder; read without the lock by those who wait for it or hear of its end.
  std::atomic<Slot> initiator_slot_{0};

  SpinLock send_lock_;
  SendQueue sq_;
  Pacer pacer_;
  std::uint32_t send_scanned_ = 0;  // send WQEs that polling has looked at; under the CQ's lock
  bool sends_filled_ = false;       // the array of the last poll of the CQ of both queues; under its lock
  RemoteQueuePair remote_;
  // Instead of remote_, from rtr on where the peer is reached by packets. Changed under both locks.
  std::shared_ptr<PacketPath> packets_;
  SpinLock packets_lock_;
  std::unique_ptr<DatagramPackets> datagram_packets_;  // from the first to another host on
  std::atomic<bool> on_packets_{false};
  Park parked_ = Park::none;
  HostPort::Ticket dial_ = 0;  // of the datagram that waits for its destination's process
  // The paths of datagrams that wait, up to this count of WQEs: their address handles may be destroyed.
  std::forward_list<DatagramPath> kept_paths_;
  std::uint32_t kept_until_ = 0;
  std::uint64_t parked_since_ns_ = 0;
  std::uint64_t next_try_ns_ = 0;  // when the timer of try_again_by_timer() runs
  std::uint32_t rnr_spin_ = 16;
  std::uint32_t answered_ = 0;  // the initiator's count of operations when we last gave it our CPU
  std::atomic<bool> draining_{false};
  bool announced_ = false;  // the target was told that we are parked, and has not kicked us since
  std::atomic<bool> resume_wanted_{false};

  // In err, but the initiator is stopped inside an operation, at this count of its hazard, and may yet fill a
  // receive: none is reported as flushed before it has left. Under send_lock_.
  std::optional<std::uint32_t> flush_waits_for_;
  bool initiator_left_ = false;  // since it was shut
};

}  // namespace weir::rnic
