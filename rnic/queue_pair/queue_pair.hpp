// A queue pair: its parts, and its life cycle: modify, reset, the error state, the end of its peer.
//
// The parts, each with its own state:
//   send_side.hpp     the send ring: posting, completing, polling
//   requester.hpp     executes what was posted, on the target's memory; parks it, tries it again, gives it up
//   packet_side.hpp   does so by packets, where the peer is on another host, and answers there
//   receive_side.hpp  what was posted to receive, what arrived, what is flushed
//   initiator.hpp     whoever plays our responder, and whether it is inside an operation
//   xrc_openers.hpp   xrc_recv: which processes have it open
//
// Its life (modify, reset, errors) is in queue_pair_life.cpp.
//
// Locks, in order: the send lock or receive_lock(), then nothing else. poll_completions runs under the CQ's
// lock and takes neither. Nothing here blocks except wait_for_initiator(), which is bounded by the peer's
// current operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rnic/between_hosts/packet_side.hpp"
#include "rnic/peer.hpp"
#include "rnic/queue_pair/completion_queue.hpp"
#include "rnic/queue_pair/initiator.hpp"
#include "rnic/queue_pair/qp_common.hpp"
#include "rnic/queue_pair/qp_config.hpp"
#include "rnic/queue_pair/queue_pair_state.hpp"
#include "rnic/queue_pair/receive_side.hpp"
#include "rnic/queue_pair/requester.hpp"
#include "rnic/queue_pair/send_side.hpp"
#include "rnic/queue_pair/shared_receive_queue.hpp"
#include "rnic/queue_pair/xrc_openers.hpp"

namespace weir::rnic {

class Adapter;

class QueuePair final : private QpWhole {
 public:
  QueuePair(Adapter&, std::uint32_t index, const QpConfig&);
  // Opens an xrc_recv queue pair of another process in that XRC domain. Not valid() if it does not exist.
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
  // In SQD, and the request that was in progress on entry is not yet over.
  bool draining() const { return sends_.draining(); }
  QpAttributes attributes() const { return qp_.attributes; }
  // xrc_recv: as set last by any process that has it open.
  QpAttributes shared_attributes() const;
  bool is_anothers() const { return openers_.home() != nullptr; }
  // xrc_recv, ours: other processes have it open, so it must not be destroyed. False: no process has it open,
  // and none can open it any more.
  bool stays_open() const { return openers_.stays_open(); }
  void forget_opener(Slot dead) const { openers_.forget(dead); }
  void report_fault_to_openers(Fault fault) const { openers_.report_fault(fault); }
  void initiator_gone(Slot);  // to one of another process

  // The caller has checked the transition (check_modify). Moving to RTR connects to the destination's
  // process. False: moving to reset, and after a bounded time the initiator was still inside an operation
  // (its process is stopped, say), which may yet write into our rings. Then the queue pair is in ERR, and the
  // caller may try again.
  bool modify(QpState to, const QpAttributes&);

  // One work request at a time: append (may repeat), then ring the doorbell. The send lock is held from the
  // first append to ring_doorbell(); begin_posting/abort_posting serve ibv_wr_start/abort.
  void begin_posting() { sends_.lock().lock(); }
  SendWqe* append(const SendRequest& request, PostResult& result) { return sends_.append(request, result); }
  PostResult set_sges(SendWqe& wqe, std::span<const Sge> sges) { return sends_.set_sges(wqe, sges); }
  PostResult add_inline(SendWqe& wqe, std::span<const std::byte> piece) {
    return sends_.add_inline(wqe, piece);
  }
  void retract() { sends_.retract(); }
  void abort_posting();
  void ring_doorbell();

  // Receives: under receive_lock() from the first post_recv to recv_doorbell(), which publishes the posted
  // receives and kicks an initiator that waits for one.
  SpinLock& receive_lock() { return receives_.lock(); }
  PostResult post_recv(std::uint64_t wr_id, std::span<const Sge> sges) { return receives_.post(wr_id, sges); }
  void recv_doorbell() { receives_.doorbell(); }

  std::size_t poll_completions(CompletionQueue&, std::span<WorkCompletion>);
  std::size_t unpolled(const CompletionQueue&) const;  // what poll_completions() would find without a limit
  // Called before poll_completions, also under the CQ's lock: fetches the next CQE from the core that wrote
  // it.
  void prefetch_completion() const { receives_.prefetch(); }

  // Takes one packet of a batch for this queue pair; after the batch, its answer is sent.
  // Why a packet that names us is dropped, whether it is intact or not; nullopt: it is to be received.
  std::optional<Dropped> refusal_of(const ArrivedPacket&);
  void receive_packet(const ArrivedPacket&);
  void answer_packets();

  // The requester's retry entry: called from poll, a kick or a timer. Returns false when nothing is parked
  // any more.
  bool resume();
  // It stood first in line for its window, which is open.
  void take_turn();
  // What limits its packets to its peer; nullptr: nothing does.
  std::shared_ptr<SharedWindow> packet_window();
  void peer_gone(Slot);
  void process_gone(std::uint64_t process);     // of another user, reached by packets
  void finish_packets() { packets_.finish(); }  // our process ends
  void hurry();                                 // Adapter::hurry()
  // The WQEs of our SRQ whose completions in our ring are not yet polled.
  void append_completed(std::vector<std::uint32_t>& wqes) const { receives_.append_completed(wqes); }
  void on_fault(Fault);  // a peer moved us to err
  void kick_initiator_if_parked() const { qp_.kick_initiator_if_parked(); }
  // Returns once the initiator's current operation is over, or it is dead. False: it was still inside after a
  // bounded time (its process is stopped, say); whatever it may touch must then stay where it is.
  bool wait_for_initiator(std::uint64_t longest_ns = longest_operation_ns) const {
    return initiator_.wait(longest_ns);
  }
  // The keys of the memory that a SEND which began already may fill; nullopt: not known, any.
  std::optional<std::vector<std::uint32_t>> receive_keys() { return receives_.keys(); }
  // The process that plays our responder is inside an operation and stays there for now; it may be stopped.
  bool initiator_inside() const {
    return valid() && !has_many_senders(qp_.config.type) && !initiator_.leaves_at_once();
  }
  // Before its destruction: it answers nobody any more. Under the adapter's lock.
  void shut();
  // After shut(), and not under that lock, because it may take as long as wait_for_initiator().
  // Without it the rings stay.
  void wait_after_shut() { initiator_left_ = wait_for_initiator(); }
  // The process that plays our responder rang its last doorbell on that CPU.
  bool initiator_on(Cpu cpu) const { return initiator_.on(cpu); }
  // The process that plays our responder.
  Slot initiator_slot() const { return initiator_.slot(); }
  bool connected_to(const Peer& peer) const { return requester_.connected_to(peer); }
  void quiesce() {  // returns once no operation that began before is still running
    sends_.lock().lock();
    unlock_sends();
  }

 private:
  enum class InitiatorLeft : bool { no, yes };
  void attach();
  void begin_incarnation();
  void execute();
  void unlock_sends();
  InitiatorLeft answer_no_more(QpState to);
  bool modify_locked(QpState to, const QpAttributes&, InitiatorLeft);
  void set_attributes(const QpAttributes&);
  void connect();
  void drain();
  bool leave_for(QpState to);
  bool reset(InitiatorLeft);
  void announce_unpolled();
  bool peer_gone_locked();
  void flush_everything(InitiatorLeft);
  bool flush_receives_once_left();
  void pause_flush();

  // What the parts ask for.
  void enter_error() override;
  void note_parked() override;
  void resume_at(std::uint64_t deadline_ns) override;
  void wait_for_initiators() const override;

  Adapter& nic_;
  QpCommon qp_;
  XrcOpeners openers_;
  Initiator initiator_;
  PacketPolling polling_;
  ReceiveSide receives_;
  SendSide sends_;
  Requester requester_;
  PacketSide packets_;
  bool sends_filled_ = false;  // the array of the last poll of the CQ of both queues; under its lock
  std::atomic<bool> resume_wanted_{false}, turn_given_{false};
  // In err, but the initiator is stopped inside an operation, at this count of its hazard, and may yet fill a
  // receive: none is reported as flushed before it has left. Under the send lock.
  std::optional<std::uint32_t> flush_waits_for_;
  RetryPauses flush_pauses_;
  bool initiator_left_ = false;  // since it was shut
};

}  // namespace weir::rnic
