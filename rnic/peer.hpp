// Another process as this NIC sees it: its shared segment, its translation-and-protection table, and the
// means to touch its memory and to wake it. One of the two seams of rnic/ to the outside (the other is
// HostPort below): the NIC itself does no I/O.
//
// Lifetime: held by shared_ptr from every queue pair connected to it; its mappings stay valid after the
// process is gone, `alive` tells. Thread safety: all members may be called from any thread.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "rnic/memory/segment_layout.hpp"
#include "wire/roce.hpp"

namespace weir::rnic {

// Why an initiator moved its target queue pair to err: the kind of its NAK.
enum class Fault : std::uint8_t {
  operational,      // what the target had posted is not what it said
  invalid_request,  // the request is none that it takes
  access            // the key or the rights do not cover what the request asks for
};

class Peer {
 public:
  virtual ~Peer() = default;

  Slot slot() const { return slot_; }
  bool alive() const { return alive_.load(std::memory_order_acquire); }
  SegmentHeader& segment() const { return *segment_; }
  std::byte* segment_base() const { return reinterpret_cast<std::byte*>(segment_); }
  std::size_t segment_size() const { return segment_size_; }
  // The entry that this rkey would be in; it is valid only if its key equals the rkey.
  const TptEntry& tpt_entry(std::uint32_t rkey) const { return tpt_[(rkey >> 8) & (max_keys - 1)]; }

  // Memory of that process that is mapped here too: where [addr, addr+length) of this region is in our own
  // address space, or nullptr if it is not (yet) mapped. May start mapping it for the next time; never
  // blocks.
  virtual std::byte* window(const TptEntry& entry, std::uint64_t addr, std::uint64_t length) = 0;

  // Asked after a copy to or from window(entry, addr, length): false if that may have gone to pages that are
  // nobody's, because the file behind the window was cut short. What the process really has there, write()
  // and read() find out.
  bool still_there(const TptEntry& entry, std::uint64_t addr, std::uint64_t length) {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // the copy may have trapped
    if (windows_lost_ == nullptr || !windows_lost_->load(std::memory_order_relaxed)) [[likely]]
      return true;
    return window(entry, addr, length) != nullptr;
  }

  // What of a window a copy has to expect to be missing (trapped_copy.hpp): all of it where it is the
  // program's own memory. A neighbour's is a mapping of ours, and still_there() tells.
  std::span<const std::byte> own_memory(const std::byte* window, std::uint64_t length) const {
    return {window, windows_lost_ == nullptr ? length : 0};
  }

  // Memory of that process that is not mapped: in address order, so that the last byte lands last.
  struct Remote {
    std::span<const iovec> pieces;
    std::span<const std::uint32_t> keys;  // of the region in which each piece lies
  };
  enum class Transfer : std::uint8_t {
    done,
    fault,        // the range is not there, or the kernel refuses
    local_fault,  // our own side of it is not there
    gone,         // the process is
    // What has not been copied yet will not be; check all again, and try again.
    late,  // the process lives, and its mover did not come to it in time
    // As late, but the mover had begun a piece and may yet make that copy. It makes one at a time, so a copy
    // that is asked for later, of it and not by a mapping, comes behind.
    unfinished,
    refused  // its mover does not do it: the region just went away, or there is no thread for a mover
  };
  virtual Transfer write(std::span<const iovec> local, const Remote& remote) = 0;
  virtual Transfer read(std::span<const iovec> local, const Remote& remote) = 0;

  // Wake-ups. All are hints that may be lost only if the process is gone.
  virtual void kick(Qpn parked) = 0;                        // retry what is parked on us; Qpn(): whatever is
  virtual void raise_cq_event(std::uint32_t cq_index) = 0;  // its armed CQ got a completion
  virtual void report_fault(Qpn theirs, Fault) = 0;         // we moved its queue pair to err (a NAK)
  virtual void report_srq_limit(std::uint32_t srq_index) = 0;
  virtual void report_closed(Qpn theirs) = 0;  // we closed its queue pair, which we had open
  // A receive that we took from its SRQ and shall not complete. The SRQ is the one of this incarnation.
  struct TakenFrom {
    std::uint32_t srq_index, incarnation, wqe;
  };
  virtual void return_receive(const TakenFrom& taken) = 0;

 protected:
  Slot slot_ = 0;
  SegmentHeader* segment_ = nullptr;
  std::size_t segment_size_ = 0;
  const TptEntry* tpt_ = nullptr;
  const std::atomic<bool>* windows_lost_ = nullptr;  // whether any was; nullptr: none can be
  std::atomic<bool> alive_{true};
};
using PeerPtr = std::shared_ptr<Peer>;

// From an address of ours to one of another host.
struct PacketRoute {
  Gid source{}, destination{};
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t interface = 0;  // the link of a link-local destination, which says nothing without it
  Qpn from;                     // which queue pair sends, for those who watch
  // To a process of another user of this host, by its number (link/users); 0: by UDP, to whoever has the
  // address.
  std::uint64_t process = 0;
};
// Packets behind each other, BTH to ICRC: all of `segment` bytes, the last may be shorter.
struct PacketRun {
  std::span<const std::byte> bytes;
  std::uint16_t segment = 0;
};
// A packet as it came, BTH to ICRC, not looked at yet.
struct PacketDatagram {
  std::span<const std::byte> bytes;
  Gid source{}, destination{};
  std::uint16_t source_port = 0;
  std::uint16_t likely_id = 0;  // of its IPv4 header
  std::uint32_t interface = 0;  // as of PacketRoute, where the source is link-local
  std::uint8_t traffic_class = 0, hop_limit = 0;
  // From a process of another user of this host: its number, for which the kernel vouches, and its slot. Such
  // a packet has no ICRC: nothing changes it on its way.
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
  // The process in that slot; nullptr when nobody lives there. Connects if `may_block` (bounded), else only
  // looks.
  enum class Wait : bool { no, yes };
  virtual PeerPtr peer(Slot slot, Wait may_block) = 0;
  // For senders of datagrams, and to XRC SRQs, who wait for nobody: a process that is not connected yet is
  // being connected in the background, and until that has come to an end (`undecided`) there is nothing to
  // send to. Then Adapter::service() is called. The caller keeps the ticket, 0 at first, from one call to the
  // next about the same datagram: by it an attempt that failed is told from one not made yet.
  using Ticket = std::uint64_t;
  struct Reached {
    PeerPtr peer = nullptr;  // nullptr: nobody, or nobody who answers
    bool undecided = false;
    bool silent = false;  // somebody lives there and did not answer; it is not tried again for a while
  };
  virtual Reached reach(Slot slot, Ticket& ticket) = 0;
  // Every process of this host that can be reached, our own included: who may be attached to a group.
  struct Everybody {
    std::vector<PeerPtr> peers;
    bool undecided = false;
  };
  virtual Everybody everybody(Ticket& ticket) = 0;
  virtual std::uint64_t now_ns() = 0;
  // Adapter::service() is to be called at about this time (earlier calls are harmless).
  virtual void wake_at(std::uint64_t deadline_ns) = 0;
  // One more event is pending on this completion channel.
  virtual void raise_channel(std::uint32_t channel) = 0;
  // On-demand paging: makes sure that this range of our own memory can be touched so now. False: it cannot.
  virtual bool fault_in(void* at, std::uint64_t length, Use) = 0;
  // Whether a copy that touches what is not there is left (trapped_copy.hpp), in this thread, with the
  // handlers that the program has now. Then nobody needs to fault_in() before, which costs several times what
  // the copy does.
  virtual bool traps_copies() = 0;
  virtual void async_event(AsyncEvent, QueuePair*, SharedReceiveQueue*) = 0;

  // Packets to and from other hosts and other users; where there are none, nothing is sent and nothing comes.
  // What is sent may be lost. Takes no lock of the NIC's.
  virtual void send_packets(const PacketRoute&, std::span<const PacketRun>) {}
  // How many packets a run on that way may have: 1 where the kernel does not cut runs up.
  virtual std::size_t packets_in_run(const PacketRoute&) { return 1; }
  // Hands over what has come, in this thread, and returns at once if nothing has.
  using PacketSink = std::function<void(std::span<const PacketDatagram>)>;
  virtual void receive_packets(const PacketSink&) {}
  // The process of another user in that slot: its number, as of PacketRoute; 0: nobody's. Where a connection
  // to it is wanted it does not wait for one.
  virtual std::uint64_t process_in(Slot) { return 0; }
  // The same, if packets go there already; costs next to nothing where they go to no other user.
  virtual std::uint64_t known_process_in(Slot) { return 0; }

  // Whether that is an address of this host: a process of another user may say any, where on UDP the kernel
  // does.
  virtual bool is_ours(const Gid&) { return true; }

  // A packet that was checked and is none of our queue pairs': for queue pair 1, or for another process of
  // this host.
  virtual void receive_management(const PacketDatagram&, const wire::Packet&) {}
  virtual void pass_on(Slot, const PacketDatagram&) {}
};

}  // namespace weir::rnic
