// Another process as this NIC sees it: its shared segment, its translation-and-protection table, and the
// means to touch its memory and to wake it. One of the two seams of rnic/ to the outside (the other is
// HostPort below): the NIC itself does no I/O.
//
// Lifetime: held by shared_ptr from every queue pair connected to it. Its mappings stay valid after the
// process is gone, which `alive` shows. Thread safety: all members may be called from any thread.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "hash/siphash.hpp"
#include "rnic/memory/segment_layout.hpp"
#include "wire/roce.hpp"

namespace weir::rnic {

// Why an initiator moved its target queue pair to ERR: the kind of its NAK.
enum class Fault : std::uint8_t {
  operational,      // the target's posted receives were not what it said
  invalid_request,  // the target does not take such a request
  access            // the key or the rights do not cover the request
};

class Peer {
 public:
  virtual ~Peer() = default;

  Slot slot() const { return slot_; }
  bool alive() const { return alive_.load(std::memory_order_acquire); }
  SegmentHeader& segment() const { return *segment_; }
  std::byte* segment_base() const { return reinterpret_cast<std::byte*>(segment_); }
  std::size_t segment_size() const { return segment_size_; }
  // The entry that this rkey would occupy; it is valid only if its key equals the rkey.
  const TptEntry& tpt_entry(std::uint32_t rkey) const { return tpt_[(rkey >> 8) & (max_keys - 1)]; }

  // Memory of that process that is mapped here too: where [addr, addr+length) of this region is in our own
  // address space, or nullptr if it is not (yet) mapped. May start mapping it for next time; never blocks.
  virtual std::byte* window(const TptEntry& entry, std::uint64_t addr, std::uint64_t length) = 0;

  // Call after a copy to or from window(entry, addr, length): false if the copy may have gone to pages that
  // belong to nobody, because the file behind the window was truncated. write() and read() find out what the
  // process really has there.
  bool still_there(const TptEntry& entry, std::uint64_t addr, std::uint64_t length) {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy may have trapped
    if (windows_lost_ == nullptr || !windows_lost_->load(std::memory_order_relaxed)) [[likely]]
      return true;
    return window(entry, addr, length) != nullptr;
  }

  // The part of a window that a copy must expect to be missing (trapped_copy.hpp): all of it if it is the
  // program's own memory. A neighbour's window is a mapping of ours, and still_there() checks it.
  std::span<const std::byte> own_memory(const std::byte* window, std::uint64_t length) const {
    return {window, windows_lost_ == nullptr ? length : 0};
  }

  // Unmapped memory of that process: moved in address order, so that the last byte lands last.
  struct Remote {
    std::span<const iovec> pieces;
    std::span<const std::uint32_t> keys;  // of the region that each piece is in
  };
  enum class Transfer : std::uint8_t {
    done,
    fault,        // the range is not there, or the kernel refuses
    local_fault,  // our own side of the range is not there
    gone,         // the process is gone
    // Anything not yet copied will not be copied; check everything again, and retry.
    late,  // the process is alive, but its mover did not get to the copy in time
    // As late, but the mover had begun a piece and may yet make that copy. It makes one copy at a time, so a
    // copy requested from it later (not made through a mapping) comes after that one.
    unfinished,
    refused  // its mover does not make the copy: the region just went away, or no thread could be made for
             // the mover
  };
  virtual Transfer write(std::span<const iovec> local, const Remote& remote) = 0;
  virtual Transfer read(std::span<const iovec> local, const Remote& remote) = 0;

  // Wake-ups. All are hints that may be lost only if the process is gone.
  virtual void kick(Qpn parked) = 0;  // retry what is parked on us; Qpn(): everything parked
  virtual void raise_cq_event(std::uint32_t cq_index) = 0;  // its armed CQ got a completion
  virtual void report_fault(Qpn theirs, Fault) = 0;         // we moved its queue pair to ERR (a NAK)
  virtual void report_srq_limit(std::uint32_t srq_index) = 0;
  // This message to its queue pair found no receive, because it withholds them (QpContext::withheld_from).
  virtual void report_withheld(Qpn theirs, std::uint32_t message) = 0;
  virtual void report_closed(Qpn theirs) = 0;  // we closed its queue pair, which we had open
  // A receive that we took from its SRQ and will not complete. The SRQ is the one of this incarnation.
  struct TakenFrom {
    std::uint32_t srq_index, incarnation, wqe;
  };
  virtual void return_receive(const TakenFrom& taken) = 0;

 protected:
  Slot slot_ = 0;
  SegmentHeader* segment_ = nullptr;
  std::size_t segment_size_ = 0;
  const TptEntry* tpt_ = nullptr;
  const std::atomic<bool>* windows_lost_ = nullptr;  // whether any window was lost; nullptr: none can be
  std::atomic<bool> alive_{true};
};
using PeerPtr = std::shared_ptr<Peer>;

// From one of our addresses to an address of another host.
struct PacketRoute {
  Gid source{}, destination{};
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t interface = 0;  // the link of a link-local destination, which is ambiguous without it
  Qpn from;                     // the sending queue pair, for observers
  // The number of the destination process if it belongs to another user of this host (link/users); 0: the
  // packet goes over UDP to the host with that address.
  std::uint64_t process = 0;

  // Packets of both may leave in one call: all but the sender is the same.
  bool is_same_way(const PacketRoute& other) const {
    return destination == other.destination && source == other.source &&
           traffic_class == other.traffic_class && hop_limit == other.hop_limit &&
           interface == other.interface && process == other.process;
  }
};
// Packets laid back to back, BTH to ICRC: all of `segment` bytes; the last may be shorter.
struct PacketRun {
  std::span<const std::byte> bytes;
  std::uint16_t segment = 0;
  std::span<const Qpn> from = {};  // of each packet, for observers; empty: all are from that of the route
};
inline constexpr std::size_t longest_run_bytes = 65'507;  // the largest UDP payload before the kernel cuts it
// A packet as it arrived, BTH to ICRC, unchecked.
struct PacketDatagram {
  std::span<const std::byte> bytes;
  Gid source{}, destination{};
  std::uint16_t source_port = 0;
  std::uint16_t likely_id = 0;  // of its IPv4 header
  std::uint32_t interface = 0;  // as of PacketRoute, if the source is link-local
  std::uint8_t traffic_class = 0, hop_limit = 0;
  // From a process of another user on this host: its number, which the kernel vouches for, and its slot. Such
  // a packet has no ICRC, because nothing can change it on its way.
  std::uint64_t process = 0;
  Slot slot = 0;
};

enum class AsyncEvent : std::uint8_t {
  qp_fatal,
  qp_request_error,
  qp_access_error,
  comm_est,
  srq_limit_reached,
  qp_last_wqe_reached,
  sq_drained
};

class QueuePair;
class SharedReceiveQueue;

// What the NIC asks of the process around it.
class HostPort {
 public:
  virtual ~HostPort() = default;
  // The process in that slot; nullptr when the slot is empty. Connects if `may_block` (bounded), otherwise
  // only looks it up.
  enum class Wait : bool { no, yes };
  virtual PeerPtr peer(Slot slot, Wait may_block) = 0;
  // For senders of datagrams, and senders to XRC SRQs, which never wait: a process not yet connected is
  // connected in the background. Until that attempt ends (`undecided`) there is nothing to send to; when it
  // ends, Adapter::service() is called. The caller keeps the ticket, 0 at first, from one call to the next
  // for the same datagram: the ticket tells a failed attempt from one not yet made.
  using Ticket = std::uint64_t;
  struct Reached {
    PeerPtr peer = nullptr;  // nullptr: no process, or none that answers
    bool undecided = false;
    bool silent = false;  // a process is there but did not answer; it is not tried again for a while
  };
  virtual Reached reach(Slot slot, Ticket& ticket) = 0;
  // Every reachable process of this host, our own included: those that may be attached to a group.
  struct Everybody {
    std::vector<PeerPtr> peers;
    bool undecided = false;
  };
  virtual Everybody everybody(Ticket& ticket) = 0;
  virtual std::uint64_t now_ns() = 0;
  // Adapter::service() must be called at about this time (earlier calls are harmless).
  virtual void wake_at(std::uint64_t deadline_ns) = 0;
  // Departures::leave_overdue() must be called at about this time.
  virtual void watch_departures_at(std::uint64_t deadline_ns) { wake_at(deadline_ns); }
  // A completion queue was armed: its owner will sleep, and count on the thread that waits for packets.
  virtual void event_wanted() {}
  // One more event is pending on this completion channel.
  virtual void raise_channel(std::uint32_t channel) = 0;
  // On-demand paging: makes this range of our own memory accessible for that use. False: it cannot.
  virtual bool fault_in(void* at, std::uint64_t length, Use) = 0;
  // Whether a copy that touches missing memory is abandoned safely (trapped_copy.hpp), in this thread, with
  // the handlers that the program has now. If so, the caller need not call fault_in() first, which costs
  // several times the copy.
  virtual bool traps_copies() = 0;
  virtual void async_event(AsyncEvent, QueuePair*, SharedReceiveQueue*) = 0;
  // A message found a receive of ours withheld (Adapter::withhold_receives).
  virtual void receive_withheld(Qpn, std::uint32_t /*message*/) {}

  // Packets to and from other hosts and other users; if there are none, nothing is sent or received. Packets
  // may be lost. Takes no lock of the NIC.
  virtual void send_packets(const PacketRoute&, std::span<const PacketRun>) {}
  // The secret that these packets prove to have, both ways (wire/keyed_icrc.hpp); nullptr: they prove
  // nothing. It stays as long as the host, and the same.
  virtual const hash::SipKey* wire_key() const { return nullptr; }
  // The limit of packets in a run on that route: 1 if the kernel does not split runs.
  virtual std::size_t packets_in_run(const PacketRoute&) { return 1; }
  // Nothing of several packets that left in a run arrived there, again and again: they leave one by one now.
  virtual void runs_are_lost(const PacketRoute&) {}
  // Nothing comes back from there, for long (packet/requester.hpp, is_unanswered).
  virtual void path_is_silent(const PacketRoute&, Qpn /*to*/) {}
  // Whether packets from other hosts have arrived that nobody has taken.
  virtual bool packets_wait() { return false; }
  // Hands over the packets that have arrived, in this thread; returns at once if there are none.
  using PacketSink = std::function<void(std::span<const PacketDatagram>)>;
  virtual void receive_packets(const PacketSink&) {}
  // The number (as of PacketRoute) of another user's process in that slot; 0: the slot is empty. If this
  // needs a connection to it, the call does not wait for one.
  virtual std::uint64_t process_in(Slot) { return 0; }
  // The same, if packets already go there; costs next to nothing if packets go to no other user.
  virtual std::uint64_t known_process_in(Slot) { return 0; }
  // Appends the numbers of other users' processes on this host that are in the group.
  virtual void append_members(const Gid& /*group*/, std::vector<std::uint64_t>& /*processes*/) {}

  // Whether that is an address of this host: a process of another user may claim any address, whereas on UDP
  // the kernel checks it.
  virtual bool is_ours(const Gid&) { return true; }

  // From now on packets come from there to a queue pair of ours; each needs its own expect_no_more().
  virtual void expect_packets(const Gid& /*source*/) {}
  virtual void expect_no_more(const Gid& /*source*/) {}

  // A packet that is for none of our queue pairs: it is for queue pair 1, or for another process of this
  // host. Whether to take it, before its ICRC is checked: strangers send these, so an answer costs no system
  // call. nullopt: it is to be taken.
  virtual std::optional<Dropped> refuse_management(const PacketDatagram&, const wire::Packet&) { return {}; }
  virtual std::optional<Dropped> refuse_passing_on(Slot, const PacketDatagram&) { return {}; }
  // And once it has proved intact:
  virtual void receive_management(const PacketDatagram&, const wire::Packet&) {}
  virtual void pass_on(Slot, const PacketDatagram&) {}
};

}  // namespace weir::rnic
