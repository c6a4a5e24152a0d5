// The words of the specification as types. Enumerators carry the values of the verbs ABI
// (<infiniband/verbs.h>), so that verbs/ translates by a cast; verbs/ibv/abi_check.cpp asserts
// that they agree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::rnic {

using Slot = std::uint16_t;  // which process of this host (link/same_host.hpp)

// A QPN names a process and one of its queue pairs: slot in the upper 10 bits, index in the lower 14. So a
// requester finds the destination's process from the number alone, as a NIC finds a host from an address.
inline constexpr unsigned qp_index_bits = 14;
inline constexpr std::uint32_t max_qps = 1u << qp_index_bits;
inline constexpr std::uint32_t max_slots = 1u << (24 - qp_index_bits);

class Qpn {
 public:
  constexpr Qpn() = default;
  constexpr explicit Qpn(std::uint32_t value) : value_(value & 0xffffff) {}
  constexpr Qpn(Slot slot, std::uint32_t index)
      : value_((static_cast<std::uint32_t>(slot) << qp_index_bits) | (index & (max_qps - 1))) {}

  constexpr std::uint32_t value() const { return value_; }
  constexpr Slot slot() const { return static_cast<Slot>(value_ >> qp_index_bits); }
  constexpr std::uint32_t index() const { return value_ & (max_qps - 1); }
  friend constexpr bool operator==(Qpn, Qpn) = default;

 private:
  std::uint32_t value_ = 0;
};

using Gid = std::array<std::uint8_t, 16>;

// The destination of a datagram whose address handle names a multicast group: a number that no queue pair has
// (IBA 10.5.1).
inline constexpr Qpn multicast_destination(0xffffff);

enum class QpType : std::uint8_t {
  rc = 2,
  uc = 3,
  ud = 4,
  raw_packet = 8,
  xrc_send = 9,
  xrc_recv = 10,
  // In verbs these two are a work queue and a raw packet queue pair (receive_side_scaling.hpp).
  work_queue = 64,
  rss = 65,
};
// Unconnected: any process may send to it, and arrivals are in datagram slots.
constexpr bool is_datagram(QpType type) {
  return type == QpType::ud || type == QpType::raw_packet || type == QpType::work_queue;
}
// Senders inside a delivery are counted, but not known.
constexpr bool has_many_senders(QpType type) { return is_datagram(type) || type == QpType::rss; }
// Its requests are acknowledged.
constexpr bool is_reliable(QpType type) {
  return type == QpType::rc || type == QpType::xrc_send || type == QpType::xrc_recv;
}

enum class QpState : std::uint32_t { reset = 0, init, rtr, rts, sqd, sqe, err };

enum class SendOpcode : std::uint8_t {
  rdma_write = 0,
  rdma_write_with_imm = 1,
  send = 2,
  send_with_imm = 3,
  rdma_read = 4,
  compare_and_swap = 5,
  fetch_and_add = 6,
  local_invalidate = 7,
  bind_window = 8,
  send_with_invalidate = 9,
  atomic_write = 15,
};

enum class WcOpcode : std::uint8_t {
  send = 0,
  rdma_write = 1,
  rdma_read = 2,
  compare_and_swap = 3,
  fetch_and_add = 4,
  bind_window = 5,
  local_invalidate = 6,
  atomic_write = 9,
  recv = 128,
  recv_rdma_with_imm = 129
};

enum class WcStatus : std::uint8_t {
  success = 0,
  loc_len_err = 1,
  loc_qp_op_err = 2,
  loc_prot_err = 4,
  wr_flush_err = 5,
  mw_bind_err = 6,
  rem_inv_req_err = 9,
  rem_access_err = 10,
  rem_op_err = 11,
  retry_exc_err = 12,
  rnr_retry_exc_err = 13,
};

namespace access {
inline constexpr std::uint32_t local_write = 1, remote_write = 2, remote_read = 4, remote_atomic = 8,
                               mw_bind = 16, zero_based = 32;
// Only in TptEntry::access: an lkey. Windows do not have it.
inline constexpr std::uint32_t local_read = 1u << 29;
// Only in QpContext::access: the queue pair answers READs and atomics at all (its max_dest_rd_atomic is not
// 0).
inline constexpr std::uint32_t responder_depth = 1u << 30;
// On-demand paging: the region's range need not be mapped, and its mapping may change while it is registered.
inline constexpr std::uint32_t on_demand = 64;
// A null region: whatever the address, writes go to `base`, which is as large as the longest message and
// discards them, and reads return the zeros behind it.
inline constexpr std::uint32_t null = 128;
}  // namespace access
namespace send_flag {
inline constexpr std::uint32_t fence = 1, signaled = 2, solicited = 4, inline_data = 8;
}

// What the NIC does with local memory.
enum class Use : bool { read, write };

struct Sge {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};

// Limits, true and enforced; the device reports exactly these.
inline constexpr std::uint32_t max_sge = 32;
inline constexpr std::uint32_t max_wr = 32768;
inline constexpr std::uint32_t max_inline = 1024;
inline constexpr std::uint32_t max_cqs = 4096;
inline constexpr std::uint32_t max_cqe = 1u << 22;
inline constexpr std::uint32_t max_srqs = 1024;
inline constexpr std::uint32_t max_keys = 1u << 20;  // entries of the protection table
inline constexpr std::uint32_t max_mws = 1u << 16;
inline constexpr std::uint32_t max_mrs = max_keys - max_mws - 1;  // entry 0 stays unused
inline constexpr std::uint64_t max_message_bytes = 1ull << 31;
inline constexpr std::uint32_t max_datagram_bytes = 4096;  // path MTU
inline constexpr std::uint32_t grh_bytes = 40;
// An MTU plus an Ethernet header and a VLAN tag; the checksum is not part of what is sent.
inline constexpr std::uint32_t max_frame_bytes = 14 + 4 + max_datagram_bytes;
static_assert(max_frame_bytes <= grh_bytes + max_datagram_bytes, "a datagram slot holds a frame");
inline constexpr std::uint32_t max_steering_rules = 1024;
inline constexpr std::uint32_t max_multicast_attachments = 1024;
// READs and atomics outstanding on a queue pair. They are executed one after the other; the number is what
// programs and the connection manager negotiate.
inline constexpr std::uint32_t max_rd_atomic = 16;
inline constexpr std::uint32_t atomic_bytes = 8;

// One polled completion, in the NIC's own terms; verbs/ writes it into an ibv_wc.
struct WorkCompletion {  // no member has an initial value: an empty poll must not write an array of them
  std::uint64_t wr_id;
  WcStatus status;
  WcOpcode opcode;
  bool has_imm;
  bool has_invalidated;  // imm_be then holds the key that the message invalidated, in host order
  bool has_grh;
  std::uint32_t byte_len;
  std::uint32_t imm_be;  // as it was posted: network order, untouched
  std::uint32_t qpn;
  std::uint32_t src_qpn;
  bool over_ipv4;  // has_grh: an IPv4 header is in its last 20 bytes, else an IPv6 header in all 40
};

}  // namespace weir::rnic
