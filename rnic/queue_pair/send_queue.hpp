// The send queue: a ring of WQEs private to the process, between post_send and the completion queue.
//
//   polled <= executed <= doorbell <= tail      (all count WQEs ever; index = count & mask)
//
//   tail      where the next WQE is written; beyond `doorbell` only inside wr_start .. wr_complete
//   doorbell  published to the requester: these are to be executed
//   executed  done, in order, with their status in the WQE. Between executed and doorbell a packet path has
//             another count, what it has begun to send (packet::Requester::begun); on the same host both are
//             one
//   polled    reported; their entries are free again. One completion frees every WQE up to it, which is
//             what lets an unsignalled WR be "completed by" the next signalled one
//
// wr_id stays here, on the host side: it never travels. Threading: tail, doorbell and executed move under the
// queue pair's send lock; polled moves under the CQ's lock. executed and polled are atomics because the other
// side reads them: release on the store publishes the WQE's status (executed) or frees the entry for reuse
// (polled).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "rnic/memory/prefetch.hpp"
#include "rnic/types.hpp"

namespace weir::rnic {

// What an address handle holds.
struct DatagramPath {
  std::array<std::byte, grh_bytes> grh{};
  Gid group{};  // multicast
  // To another host, or, for a group, also to others: the limit of a packet's payload in bytes; 0: on this
  // host.
  std::uint32_t packet_bytes = 0;
  std::uint32_t interface = 0;  // as of PacketRoute
};

struct DatagramAddress {
  Qpn destination;
  std::uint32_t qkey;
  const DatagramPath* path;  // the address handle's; copied when executed
};

struct AtomicOperands {
  std::uint64_t compare_add;
  std::uint64_t swap;
};

struct WindowBinding {  // a bind's address is the WQE's remote_addr, the new key is its rkey
  std::uint64_t length;
  std::uint32_t lkey;  // the region's; 0: bind to nothing
  std::uint32_t access;
};

struct SendWqe {
  std::uint64_t wr_id;
  SendOpcode opcode;
  WcStatus status;
  bool signaled;
  bool solicited;
  bool inlined;
  bool fenced;  // packets: waits for all READs and atomics before it
  std::uint8_t num_sge;
  std::uint32_t imm_be;  // or, for the two opcodes that invalidate, the key
  std::uint32_t inline_bytes;
  std::uint32_t byte_len;     // filled when executed
  std::uint32_t remote_srqn;  // XRC
  std::uint64_t remote_addr;
  std::uint32_t rkey;
  std::uint32_t path_kbps;  // UD: the static rate of the path; 0: none
  union {
    DatagramAddress datagram;  // UD
    AtomicOperands atomic;     // compare_and_swap, fetch_and_add
    WindowBinding binding;     // bind_window
  };

  // followed by sges, or inline data, up to the ring's stride
  Sge* sges() { return reinterpret_cast<Sge*>(this + 1); }
  const Sge* sges() const { return reinterpret_cast<const Sge*>(this + 1); }
  std::byte* inline_data() { return reinterpret_cast<std::byte*>(this + 1); }
  std::uint64_t posted_bytes() const {
    if (inlined) return inline_bytes;
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < num_sge; ++i) bytes += sges()[i].length;
    return bytes;
  }
};

class SendQueue {
 public:
  SendQueue() = default;
  SendQueue(std::uint32_t wrs, std::uint32_t sges, std::uint32_t inline_bytes)
      : stride_(stride_for(sges, inline_bytes)), mask_(std::bit_ceil(wrs < 1 ? 1 : wrs) - 1), limit_(wrs) {
    const std::size_t bytes = stride_ * (mask_ + std::size_t{1});
    ring_.reset(static_cast<std::byte*>(std::aligned_alloc(64, bytes)));
  }

  SendWqe& at(std::uint32_t count) const {
    return *reinterpret_cast<SendWqe*>(ring_.get() + stride_ * std::size_t{count & mask_});
  }
  bool full() const { return tail - polled.load(std::memory_order_acquire) >= limit_; }
  bool allocated() const { return ring_ != nullptr; }
  // A deep ring does not fit in the cache, and its next entry was last touched a whole lap ago.
  void prefetch_next() const {
    const std::byte* next = reinterpret_cast<const std::byte*>(&at(tail));
    prefetch_to_write(next);
    prefetch_to_write(next + 64);
    prefetch_to_write(next + 128);
  }
  void reset() {
    tail = doorbell = 0;
    executed.store(0, std::memory_order_relaxed);
    polled.store(0, std::memory_order_relaxed);
  }

  std::uint32_t tail = 0;
  std::uint32_t doorbell = 0;
  std::atomic<std::uint32_t> executed{0};
  std::atomic<std::uint32_t> polled{0};

 private:
  static std::size_t stride_for(std::uint32_t sges, std::uint32_t inline_bytes) {
    const std::size_t body = std::max<std::size_t>(sizeof(Sge) * std::max(sges, 1u), inline_bytes);
    return (sizeof(SendWqe) + body + 63) / 64 * 64;
  }
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> ring_;
  std::size_t stride_ = 0;
  std::uint32_t mask_ = 0;
  std::uint32_t limit_ = 0;
};

}  // namespace weir::rnic
