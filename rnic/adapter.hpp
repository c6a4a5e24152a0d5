// The NIC of this process: its tables of queue pairs, completion queues and shared receive queues, and the
// events that reach it from outside (kicks, faults, the end of a peer).
//
// One adapter per process; every opened device context shares it. It does no I/O: memory, wake-ups, time and
// peers come through HostPort. Threading: all functions from any thread; creation and destruction take
// `mutex_`, the data path does not.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "rnic/between_hosts/deadlines.hpp"
#include "rnic/between_hosts/departures.hpp"
#include "rnic/between_hosts/packet_arrivals.hpp"
#include "rnic/between_hosts/windows.hpp"
#include "rnic/datagrams/multicast.hpp"
#include "rnic/ethernet/steering.hpp"
#include "rnic/memory/protection_table.hpp"
#include "rnic/memory/segment.hpp"
#include "rnic/memory/window_table.hpp"
#include "rnic/nic_parts.hpp"
#include "rnic/peer.hpp"
#include "rnic/queue_pair/completion_queue.hpp"
#include "rnic/queue_pair/parked_queues.hpp"
#include "rnic/queue_pair/queue_pair.hpp"
#include "rnic/queue_pair/queue_pair_numbers.hpp"
#include "rnic/queue_pair/shared_receive_queue.hpp"
#include "rnic/tracer.hpp"
#include "rnic/weak/requests.hpp"

namespace weir::rnic {

class Adapter {
 public:
  Adapter(Slot slot, Segment& segment, TptEntry* table, HostPort& host);

  Slot slot() const { return slot_; }
  Segment& segment() { return segment_; }
  ProtectionTable& table() { return table_; }
  const ProtectionTable& table() const { return table_; }
  NicParts parts() { return {slot_, segment_, table_, windows_, host_, departures_}; }
  Departures& departures() { return departures_; }
  HostPort& host() { return host_; }
  WindowTable& windows() { return windows_; }
  MulticastGroups& multicast() { return multicast_; }
  Steering& steering() { return steering_; }
  // Call before the first queue pair and the first region: other hosts cannot guess their numbers then.
  void begin_numbers_at(std::uint64_t secret);
  // nullptr: tracing is off. Set before the first queue pair; the tracer outlives the adapter.
  Tracer* tracer() const { return modes_.tracer; }
  void set_tracer(Tracer* tracer) { modes_.tracer = tracer; }
  // nullptr: requests are executed at once, in order. Set before the first queue pair.
  weak::Weak* weak() const { return modes_.weak.get(); }
  void set_weak(const weak::Plan& plan) { modes_.weak = std::make_unique<weak::Weak>(plan); }
  // Executes what waits by choice: our process ends, and other NICs would have done it by now.
  void hurry();

  // Each returns nullptr when the table or the segment is full. Objects are destroyed by destroy(); the
  // caller has checked that nothing refers to them any more.
  QueuePair* create_qp(const QpConfig&);
  // Opens an xrc_recv queue pair that another process made, or to which this one has no handle any more;
  // nullptr: that domain has no queue pair of that number. May take a moment to connect to its process.
  QueuePair* open_qp(Qpn number, std::uint64_t xrcd);
  CompletionQueue* create_cq(std::uint32_t cqe, std::uint32_t channel);
  SharedReceiveQueue* create_srq(std::uint32_t pd, std::uint32_t wrs, std::uint32_t sges,
                                 const XrcConfig& = {});
  // A queue pair that others have open stays until they close it.
  void destroy(QueuePair*);
  void destroy(CompletionQueue*);
  void destroy(SharedReceiveQueue*);
  CompletionQueue* cq(std::uint32_t index);

  // Invalidates the key, waits until no initiator is inside an operation that may have passed the key check,
  // then frees the key.
  void deregister(std::uint32_t key);
  // Frees a memory window, even a bound one.
  void release_window(std::uint32_t key);
  // Call after changing this key's rights in place: returns once no operation under the old rights is
  // running.
  void drain_initiators(std::uint32_t key);

  // The same from under a queue pair's send lock: takes no lock itself, and gives up on a stopped initiator
  // after a bounded time; the window then stays open to the operation which that initiator had begun. False:
  // it gave up.
  bool wait_for_initiators() const;

  // As a NIC that cannot go on with that queue pair: it is in the error state, and its program is notified.
  // False: it was in no state to break.
  bool break_down(Qpn own);

  // From that message on, counted from 1 for each queue pair, messages to it find no receive, posted or not;
  // 0: they find those that are posted, and what waits for one continues.
  void withhold_receives(Qpn own, std::uint32_t from);

  // From outside.
  void kicked(Qpn own);      // what we parked on a peer may continue
  void faulted(Qpn, Fault);  // a peer moved our queue pair, or one that we have open, to ERR
  void srq_limit(std::uint32_t index);
  void receive_returned(Slot from, const Peer::TakenFrom&);  // to one of our SRQs
  void queue_pair_closed();            // some process closed a queue pair that it had open
  void raise_cq(std::uint32_t index);  // wake the channel of our own CQ
  void peer_gone(Slot);
  void process_gone(std::uint64_t process);  // of another user, reached by packets
  void finish_packets();                     // our process ends
  void service();                            // deadlines of parked queue pairs; see HostPort::wake_at
  void kick_all_parked_on(SharedReceiveQueue&);
  // Visits the index of each queue pair that there is or was.
  template <class Visit>
  void for_each_used_qp(Visit visit) const {
    numbers_.for_each_used(visit);
  }
  // Returns once no operation of ours on that peer that began before the call is still running.
  void quiesce(Peer&);

  void note_parked(QueuePair& qp) { parked_.note(qp); }
  void forget_parked(QueuePair& qp) { parked_.forget(qp); }
  enum class Patience : std::uint8_t { try_once, wait };
  void resume_parked(Patience);
  // At about that time its packets have been on their way for long.
  void resume_at(std::uint64_t deadline_ns, const QueuePair&);

  // Takes packets that arrived from other hosts and answers them. Called by the thread that waits for the
  // network's descriptor, and by pollers of completion queues whose queue pairs may receive packets. False:
  // none had arrived, or another thread takes them.
  bool receive_packets(Patience);
  void take_packets(std::span<const PacketDatagram>);  // that arrived another way
  // Whether a completion queue with a channel is armed.
  bool has_armed_cq();
  // What may be in flight to that address, for all our queue pairs together. `process`: as of PacketRoute.
  std::shared_ptr<SharedWindow> packet_window(const Gid& destination, std::uint64_t process) {
    return packet_windows_.to(destination, process);
  }
  // The number of xrc_recv queue pairs whose packets arrive only when a poll asks for them. What they receive
  // completes into the CQs of SRQs, of which each may be meant.
  std::atomic<int>& xrc_on_packets() { return xrc_on_packets_; }

 private:
  void destroy_locked(QueuePair*);
  void close_opened(QueuePair*);
  void notify_openers_of_end(Slot);
  QueuePair* find_qp(Qpn) const;
  void show_counters(std::uint32_t qp_index);
  void retire_counters(std::uint32_t qp_index);
  void reclaim_from_srqs(Slot dead);
  void announce_unpolled(const SharedReceiveQueue&);
  void take_batch(std::span<const PacketDatagram>);
  void take_packet(const PacketDatagram&);
  std::optional<Dropped> refusal_of(const PacketDatagram&, const wire::Packet&);
  void take_multicast(const PacketDatagram&, const wire::Packet&);
  void trace(std::span<const PacketDatagram>);
  void resume_all_parked();
  void resume_due();
  void give_turns(SharedWindow&);
  std::vector<std::uint32_t> completed_of(const SharedReceiveQueue&) const;
  void kick_locked(SharedReceiveQueue&);
  void kick_guests(SharedReceiveQueue&);
  bool stopped_initiator_inside(std::uint32_t qp_index);
  struct Running;
  std::vector<Running> running_operations();
  bool may_reach(const Running&, std::uint32_t key);
  template <class Visit>
  void for_each_qp(Visit visit);

  Slot slot_;
  Segment& segment_;
  ProtectionTable table_;
  HostPort& host_;
  struct Modes {  // of `weir trace` and `weir run --weak`
    Tracer* tracer = nullptr;
    std::unique_ptr<weak::Weak> weak;
  } modes_;
  WindowTable windows_;
  MulticastGroups multicast_;
  Steering steering_;
  Departures departures_;

  std::mutex mutex_;
  // A queue pair uses its CQs and its SRQ until it is gone, so they are destroyed after it.
  std::vector<std::unique_ptr<CompletionQueue>> cqs_;
  std::vector<std::unique_ptr<SharedReceiveQueue>> srqs_;
  std::vector<std::unique_ptr<QueuePair>> qps_;     // by index
  std::vector<QueuePair*> live_qps_;                // the same, dense: what deregistration must check
  std::vector<QueuePair*> kept_;                    // those of them that only other processes have open
  std::vector<std::unique_ptr<QueuePair>> opened_;  // of other processes
  // Destroyed queue pairs whose initiator was still inside, and the receives it may still fill.
  struct LeftInside {
    Slot initiator;
    std::optional<std::vector<std::uint32_t>> receive_keys;
  };
  std::map<std::uint32_t, LeftInside> left_inside_;
  QueuePairNumbers numbers_;

  PacketArrivals packet_arrivals_;       // under mutex_
  std::vector<QueuePair*> answering_;    // of the current batch; under mutex_
  std::vector<std::uint32_t> attached_;  // to the current packet's group; under mutex_
  Windows packet_windows_;
  Deadlines packet_deadlines_;

  std::atomic<int> xrc_on_packets_{0};
  ParkedQueues parked_;
};

}  // namespace weir::rnic
