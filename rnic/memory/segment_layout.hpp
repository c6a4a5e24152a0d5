// What a process shares with its neighbours: the layout of its segment.
//
// The segment is one sparse memfd, mapped read-write by every process that talks to this one. Each word below
// has exactly one writer at a time, named beside it; words with several writers are changed only by atomic
// read-modify-write. The only locks here are those for atomics, which the kernel takes from a dead holder
// (atomic_lock.hpp). A neighbour may be killed between any two instructions, and must then leave at worst
// something unpublished (a CQE without its sequence number) that Adapter::peer_gone() cleans up.
//
// Two roles write: the *owner*, whose process the segment belongs to, and the *initiator*, the one remote (or
// own) queue pair that is connected to a queue pair here and plays its responder
// (rnic/same_host/responder.cpp).
//
// Offsets and indices read from here are masked or bounds-checked before use: a neighbour is trusted to
// cooperate, not to be free of bugs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "rnic/counters.hpp"
#include "rnic/ethernet/frame_key.hpp"
#include "rnic/ethernet/rx_hash.hpp"
#include "rnic/memory/atomic_lock.hpp"
#include "rnic/types.hpp"

namespace weir::rnic {

inline constexpr std::uint64_t segment_magic = 0x57454952'4e494341;  // "WEIRNICA": layout version included
inline constexpr std::size_t cache_line = 64;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "words are shared between processes");

// ---- queue pair
struct alignas(cache_line) QpContext {
  // Line 0: written by the owner when the queue pair is created or modified; read by the initiator. The
  // initiator also writes `state` (QpState), and only that: it may move it to ERR (compare-exchange) on its
  // NAKs.
  std::atomic<std::uint32_t> state;
  // The queue pair that may play our responder; 0: none. With over_packets: the peer is reached by packets,
  // and the owner itself plays it.
  std::atomic<std::uint32_t> remote_qpn;
  std::uint16_t type;         // QpType
  std::uint16_t incarnation;  // differs when the number is used again: an initiator must reconnect
  std::uint32_t pd;
  std::atomic<std::uint32_t> access;  // access:: flags of the queue pair
  std::atomic<std::uint32_t> qkey;    // UD
  std::uint32_t recv_cq;              // index of its CqContext
  std::uint32_t cq_line;              // our bit in that CQ's ready map
  std::uint32_t srq;                  // index of its SrqContext + 1; 0: own receive queue
  std::uint32_t rq_mask;              // receive ring entries - 1
  std::uint32_t rq_stride;            // bytes of one ReceiveWqe
  std::uint32_t cqe_mask;             // completion ring entries - 1
  std::uint64_t rq_offset;            // ReceiveWqe[rq_mask + 1]; rss: one RxHash
  std::uint64_t cqe_offset;           // ReceiveCqe[cqe_mask + 1]; UD: DatagramSlot, rss: IndirectionEntry

  // Line 1: written by the initiator. `hazard` counts up at the start and the end of each operation, so it is
  // odd during one.
  alignas(cache_line) std::atomic<std::uint32_t> hazard;
  // The rkey that this operation names, or any_receive; stored before `hazard` becomes odd, so that a reader
  // that sees it odd knows which deregistrations concern it.
  std::atomic<std::uint32_t> reaches;
  std::uint32_t rq_next;       // next receive WQE to take
  std::uint32_t cqe_next;      // next completion ring entry to write
  std::uint32_t landing_tail;  // bytes ever allocated from the landing ring
  struct Seen {                // the initiator's copies of the owner's words of these names
    std::uint32_t rq_posted, landing_head, cqe_polled;
  } seen;
  std::atomic<std::uint32_t> datagram_next;     // UD: next slot to claim (many senders, compare-exchange)
  std::atomic<std::uint32_t> datagram_senders;  // UD: how many have read `state` and are not done
  // Written by the owner, and only for a receiver that is slow on purpose; here since the initiator has this
  // line in its cache. Messages from this one on, counted from 1, find no receive; 0: all find those that are
  // posted.
  std::atomic<std::uint32_t> withheld_from;
  std::uint32_t withheld_reported;  // the last message that the initiator reported as withheld
  // for UD with an SRQ, the slots ever opened.
  alignas(cache_line) std::atomic<std::uint32_t> rq_posted;
  std::atomic<std::uint32_t> landing_head;  // bytes ever freed from the landing ring
  std::atomic<std::uint32_t> cqe_polled;    // completions ever polled
  std::uint32_t landing_mask;               // landing ring bytes - 1; 0: none
  std::uint64_t landing_offset;
  std::atomic<std::uint64_t> xrcd;  // xrc_recv: its XRC domain; 0: no process may open it any more
  std::uint64_t openers_offset;     // xrc_recv: QpOpeners
  // With over_packets: the peer's GID, its raw bytes; for observers.
  std::array<std::atomic<std::uint64_t>, 2> remote_gid;

  // Line 3: set by the initiator when it parks on this queue pair (RNR, not ready); cleared by the owner,
  // which then kicks.
  alignas(cache_line) std::atomic<std::uint32_t> initiator_parked;
  // The CPU on which the initiator rang its last doorbell (current_cpu.hpp); written only when it changes.
  std::atomic<std::uint32_t> initiator_cpu;
  // Written by the owner: what its program has set for the receiving side. The initiator must have been told
  // the same PSN and MTU.
  struct Terms {
    std::atomic<std::uint32_t> min_rnr_timer, receive_psn, mtu_bytes;
  } terms;
};
static_assert(sizeof(QpContext) == 4 * cache_line);
// In QpContext::remote_qpn: no number of a neighbour's queue pair has this bit.
inline constexpr std::uint32_t over_packets = 1u << 31;
// QpContext::reaches of an operation that names no key: it may fill a receive, and touches nothing else.
inline constexpr std::uint32_t any_receive = 0;

// Which other processes have an xrc_recv queue pair open (ibv_open_qp(3)), by slot: a number of their NIC,
// never 0; 0: not open. Each word is written by its process. It is cleared by the owner when that process is
// dead, or by the initiator when both are.
struct QpOpeners {
  std::atomic<std::uint32_t> nic[max_slots];
};

// A posted receive. sge[] continues to the ring's stride.
struct ReceiveWqe {
  std::uint32_t num_sge;
  std::uint32_t length;  // sum of the sges
  Sge sge[1];
};

// For ReceiveWqe::length. Saturates: no message is that long, but a wrapped sum would refuse short ones.
inline std::uint32_t total_length(std::span<const Sge> sges) {
  std::uint64_t sum = 0;
  for (const Sge& sge : sges) sum += sge.length;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, 0xffffffff));
}

// Where the payload of a receive is when its CQE is published.
enum class PayloadAt : std::uint8_t {
  buffer,   // already in the posted buffers
  cqe,      // in cqe.payload: poll_cq scatters it ("inline scatter")
  landing,  // in the landing ring at landing_offset: poll_cq scatters it
};

enum class Carries : std::uint8_t { nothing, immediate, invalidate };

// A completion of a receive. Published by storing `sequence` last: entry i of lap k carries k * entries + i
// + 1.
struct alignas(cache_line) ReceiveCqe {
  std::atomic<std::uint32_t> sequence;
  std::uint32_t wqe;  // own receive queue: its ring index; SRQ: its WQE number
  std::uint32_t byte_len;
  std::uint32_t imm_be;
  WcStatus status;
  WcOpcode opcode;
  PayloadAt payload_at;
  Carries carries;              // the meaning of imm_be
  std::uint32_t landing_start;  // bytes ever allocated, at this payload's start
  std::uint32_t landing_end;    // and at its end, padding included
  std::byte payload[36];
};
static_assert(sizeof(ReceiveCqe) == cache_line);
inline constexpr std::uint32_t cqe_payload_bytes = sizeof(ReceiveCqe::payload);

// ---- datagrams
// UD has many senders, so each slot is claimed by compare-exchange and completes on its own.
inline constexpr std::uint32_t no_wqe = 0xffffffff;
struct alignas(cache_line) DatagramSlot {
  std::atomic<std::uint64_t> claim;  // claimed_ring.hpp
  std::uint32_t byte_len;            // GRH included
  std::uint32_t imm_be;
  std::uint32_t src_qpn;
  bool has_imm;
  bool solicited;
  bool multicast;
  std::uint32_t wqe;  // of the SRQ, if the queue pair has one; no_wqe: dropped, its receive queue was empty
  std::byte bytes[grh_bytes + max_datagram_bytes];
};

// ---- receive-side scaling
using IndirectionEntry = std::atomic<std::uint32_t>;  // the index of a work queue

// ---- XRC
// A completion of an XRC SRQ; `cqe.sequence` is not used.
struct alignas(cache_line) XrcCompletion {
  std::atomic<std::uint64_t> claim;  // claimed_ring.hpp
  std::uint32_t qpn;                 // the queue pair that it came through
  std::uint32_t src_qpn;
  ReceiveCqe cqe;
};

// ---- completion queue
// Which queue pairs have something to poll: one bit each, and a summary over the words, so that polling an
// empty CQ reads few cache lines however many queue pairs complete into it. The first 64 need no summary. The
// very first need no bit either: every poll checks their completions directly, so a completion moves one
// cache line less between the cores, and that line twice less.
inline constexpr std::uint32_t watched_lines = 4;
inline constexpr std::uint32_t ready_words = max_qps / 64;
enum class Armed : std::uint32_t { no = 0, solicited_only = 1, next = 2 };
struct alignas(cache_line) CqContext {
  std::atomic<std::uint32_t> armed;    // Armed; the owner arms, the producer disarms (compare-exchange)
  std::atomic<std::uint32_t> channel;  // completion channel number + 1; 0: none
  std::atomic<std::uint64_t> ready0;   // queue pairs 0..63; the bits of the watched ones are ignored
  std::atomic<std::uint64_t> summary[ready_words / 64];
  std::atomic<std::uint32_t> events;  // raised and not yet fetched by ibv_get_cq_event
  alignas(cache_line) std::atomic<std::uint64_t> ready[ready_words];  // [0] unused
};

// ---- shared receive queue
// Posted WQEs are in a ring of claims. A ring entry is claimed with one compare-exchange that also names the
// claimer, so that a claim by a process that died before completing can be found and given back.
enum class ClaimState : std::uint32_t { empty, posted, claimed };
struct SrqContext {
  std::uint32_t pd;
  std::uint32_t ring_mask;
  std::uint32_t wqe_stride;
  std::uint32_t wqe_count;
  std::uint64_t ring_offset;  // std::atomic<uint64_t>[ring_mask + 1]: see SrqClaim
  std::uint64_t wqe_offset;   // ReceiveWqe[wqe_count]
  // An XRC SRQ's only:
  std::atomic<std::uint64_t> xrcd;   // its domain; 0: not an XRC SRQ, or closed
  std::uint64_t completions_offset;  // XrcCompletion[completions_mask + 1]
  std::uint32_t completions_mask;
  std::uint32_t incarnation;  // differs when the number is used again
  std::uint32_t cq, cq_line;
  std::atomic<std::uint32_t> completion_next, completions_opened;
  alignas(cache_line) std::atomic<std::uint32_t> next;  // next ring entry to claim (helped forward by anyone)
  std::atomic<std::uint32_t> limit;  // SRQ limit; the claim that goes below it takes it to 0
  alignas(cache_line) std::atomic<std::uint32_t> posted;  // ring entries ever posted (owner)
  std::atomic<std::uint32_t> parked;                      // some initiator waits for a post
  // XRC: the processes of those waiting initiators that came through a queue pair of a process other than the
  // SRQ's, and which its owner therefore does not know. One bit per slot, set before `parked`.
  std::atomic<std::uint64_t> parked_slots[max_slots / 64];
};
// lap:16 | wqe:16 | claimer QPN:24 | state:8, packed so that one compare-exchange changes all of it.
struct SrqClaim {
  std::uint16_t lap;
  std::uint16_t wqe;
  Qpn claimer;
  ClaimState state;

  constexpr std::uint64_t pack() const {
    return static_cast<std::uint64_t>(lap) << 48 | static_cast<std::uint64_t>(wqe) << 32 |
           static_cast<std::uint64_t>(claimer.value()) << 8 | static_cast<std::uint64_t>(state);
  }
  static constexpr SrqClaim unpack(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word >> 48), static_cast<std::uint16_t>(word >> 32),
            Qpn(static_cast<std::uint32_t>(word >> 8) & 0xffffff), static_cast<ClaimState>(word & 0xff)};
  }
};

// ---- guests
// An initiator inside an operation on the owner's memory that came through a queue pair of another process
// (XRC: the SRQ need not belong to its queue pair's process). This entry is to the SRQ's process what the
// hazard is to a queue pair's own process. Claimed for one operation by compare-exchange.
struct alignas(cache_line) GuestEntry {
  std::atomic<std::uint64_t> word;  // see GuestWord
};
struct GuestWord {
  std::uint32_t claims;  // ever made of the entry: tells one operation from the next
  Qpn initiator;         // Qpn(): free
  constexpr std::uint64_t pack() const {
    return static_cast<std::uint64_t>(claims) << 32 | initiator.value();
  }
  static constexpr GuestWord unpack(std::uint64_t word) {
    return {static_cast<std::uint32_t>(word >> 32), Qpn(static_cast<std::uint32_t>(word))};
  }
};
inline constexpr std::uint32_t max_guests = 256;

// ---- multicast
struct MulticastEntry {
  std::atomic<std::uint32_t> qp;  // index + 1 of the attached queue pair; 0: empty
  Gid gid;
};

// ---- handed-over copies
// If the kernel does not let an initiator touch the owner's memory, the owner's mover thread
// (verbs/nic/mover.hpp) makes the copy between the owner's memory and the lane's bytes. A lane's word is
// changed by compare-exchange only:
//
//   free --claim--> claimed --post--> posted --mover--> running --mover--> done --initiator--> posted or free
//   posted --initiator, out of patience--> cancelled --mover--> free
//   running --initiator, out of patience--> abandoned --mover--> free
//
// The other fields belong to the claimer while the lane is claimed or done; the mover may read them while it
// runs.
enum class LaneState : std::uint32_t { free, claimed, posted, running, done, cancelled, abandoned };
enum class LaneCopy : std::uint32_t { into_owner, out_of_owner };
enum class LaneAnswer : std::uint32_t {
  copied,
  fault,   // the memory is not there
  refused  // no such region, or not with these rights (any more)
};
struct alignas(cache_line) CopyLane {
  std::atomic<std::uint32_t> word;     // see LaneWord; the initiator sleeps on it
  std::atomic<std::uint32_t> sleeper;  // the initiator sleeps, or is about to
  LaneCopy copy;
  std::uint32_t key;  // of the region that the range is in
  std::uint32_t bytes;
  LaneAnswer answer;  // written by the mover
  std::uint64_t at;   // virtual address in the owner
};
static_assert(sizeof(CopyLane) == cache_line);
struct LaneWord {
  LaneState state;
  Slot claimer;
  constexpr std::uint32_t pack() const {
    return static_cast<std::uint32_t>(claimer) << 16 | static_cast<std::uint32_t>(state);
  }
  static constexpr LaneWord unpack(std::uint32_t word) {
    return {static_cast<LaneState>(word & 0xffff), static_cast<Slot>(word >> 16)};
  }
};
inline constexpr std::uint32_t copy_lane_count = 16;
inline constexpr std::uint32_t copy_lane_bytes = 256u << 10;

// ---- flow steering
struct SteeringRule {
  std::atomic<std::uint32_t> qp;  // index + 1 of the queue pair that gets the frames; 0: no rule
  std::uint32_t priority;
  FrameWords value, mask;
};

// ---- the whole
struct SegmentHeader {
  std::uint64_t magic;
  std::uint64_t bytes;
  alignas(cache_line) AtomicLock atomic_locks[atomic_lock_count];
  // By protection table index: the key of a type 2 window that its initiator invalidated by a SEND. Only the
  // owner writes the table itself; it does so when it polls that SEND.
  alignas(4096) std::atomic<std::uint32_t> invalidated[max_keys];
  alignas(4096) std::atomic<std::uint32_t> multicast_used;  // entries ever used
  MulticastEntry multicast[max_multicast_attachments];
  alignas(4096) std::atomic<std::uint32_t> copy_bell;  // counts rings; the mover sleeps on it
  std::atomic<std::uint32_t> mover_sleeps;
  std::atomic<std::uint32_t> mover_missing;  // its owner could not make a thread for it
  CopyLane copy_lanes[copy_lane_count];
  alignas(4096) std::byte copy_bytes[copy_lane_count][copy_lane_bytes];
  alignas(4096) std::atomic<std::uint32_t> steering_used;  // rules ever used
  SteeringRule steering[max_steering_rules];
  alignas(4096) std::atomic<std::uint32_t> guests_used;  // entries ever used
  GuestEntry guests[max_guests];
  alignas(4096) QpContext qps[max_qps];
  alignas(4096) CqContext cqs[max_cqs];
  alignas(4096) SrqContext srqs[max_srqs];
  // Written as counters.hpp says, read by any process.
  alignas(4096) ProcessCounters counters;
  alignas(4096) QpCounters qp_counters[max_qps];
  std::atomic<std::uint32_t> qp_exists[max_qps];
};
inline constexpr std::size_t segment_rings_offset = (sizeof(SegmentHeader) + 4095) / 4096 * 4096;
inline constexpr std::size_t segment_bytes = 4ull << 30;  // virtual; pages appear as they are touched

// A typed view into a segment at an offset that a neighbour wrote: nullptr when it does not fit.
template <class T>
T* at_offset(std::byte* base, std::size_t bytes, std::uint64_t offset, std::uint64_t count) {
  if (offset < segment_rings_offset || offset % alignof(T) != 0 || offset > bytes) return nullptr;
  if (count > (bytes - offset) / sizeof(T)) return nullptr;
  return reinterpret_cast<T*>(base + offset);
}

// nullptr: a queue pair that other processes may not open.
inline QpOpeners* openers_of(const QpContext& qp, std::byte* base, std::size_t bytes) {
  if (qp.type != static_cast<std::uint16_t>(QpType::xrc_recv)) return nullptr;
  return at_offset<QpOpeners>(base, bytes, qp.openers_offset, 1);
}
// Tells an opener's process from the next process in its slot.
inline std::uint32_t opener_number(const SegmentHeader& of) {
  return static_cast<std::uint32_t>(of.counters.identity.load(std::memory_order_relaxed)) | 1;
}
inline bool has_opener(const QpOpeners& openers) {
  return std::any_of(std::begin(openers.nic), std::end(openers.nic),
                     [](const auto& nic) { return nic.load(std::memory_order_seq_cst) != 0; });
}

// ---- translation and protection table
// In its own memfd, which neighbours can map only for reading.
struct alignas(cache_line) TptEntry {
  // rkey = lkey; 0: not valid. Stored last on registration, first on deregistration.
  std::atomic<std::uint32_t> key;
  std::uint32_t pd;
  std::uint32_t access;
  std::uint32_t window;  // which shared file backs the region (link/memory); 0: none
  std::uint64_t addr;    // as work requests name it (the iova)
  std::uint64_t base;    // virtual address of its first byte in the owner
  std::uint64_t length;
  std::uint64_t window_offset;  // of its first byte in that file
  std::uint32_t qpn;  // a type 2 memory window: the one queue pair through which it is reached; else 0
};
static_assert(sizeof(TptEntry) == cache_line);
inline constexpr std::size_t tpt_bytes = sizeof(TptEntry) * max_keys;

}  // namespace weir::rnic
