// What an initiator reports about a receive, read once and sanitized: the owner's side of ReceiveCqe.
//
// Another process writes the completion ring; it may have bugs, or write again while we read. So no word is
// used in place: ArrivedCqe copies each with one load, and clamps it to what the owner itself remembers of
// the receive. What the program is told about a message (above all its wr_id, which programs use as a
// pointer) never comes from shared memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "rnic/memory/segment_layout.hpp"

namespace weir::rnic {

// One load of a word that another process may write. The compiler may read a plain word twice, and get two
// different values.
template <class T>
T read_once(const T& word) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  T value;
  __atomic_load(&word, &value, __ATOMIC_RELAXED);
  return value;
}

inline Sge read_once(const Sge& sge) {
  return {read_once(sge.addr), read_once(sge.length), read_once(sge.lkey)};
}

// What the owner remembers, in its own memory, of a receive that it posted.
struct PostedReceive {
  std::uint64_t wr_id = 0;
  std::uint32_t length = 0;  // of all its pieces
};

class ArrivedCqe {
 public:
  // `landing_bytes`: the size of the landing ring, 0 without one.
  ArrivedCqe(const ReceiveCqe& cqe, std::uint32_t posted_length, std::uint32_t landing_bytes)
      : payload_(cqe.payload),
        imm_be_(read_once(cqe.imm_be)),
        landing_start_(read_once(cqe.landing_start)),
        landing_end_(read_once(cqe.landing_end)),
        byte_len_(read_once(cqe.byte_len)),
        status_(sane(read_once(cqe.status))),
        opcode_(read_once(cqe.opcode)),
        payload_at_(read_once(cqe.payload_at)),
        carries_(read_once(cqe.carries)) {
    if (opcode_ != WcOpcode::recv_rdma_with_imm) {
      opcode_ = WcOpcode::recv;
      byte_len_ = std::min(byte_len_, posted_length);
    } else {
      payload_at_ = PayloadAt::buffer;
      byte_len_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(byte_len_, max_message_bytes));
    }
    if (carries_ != Carries::immediate && carries_ != Carries::invalidate) carries_ = Carries::nothing;
    if (payload_at_ == PayloadAt::cqe) {
      byte_len_ = std::min(byte_len_, cqe_payload_bytes);
    } else if (payload_at_ == PayloadAt::landing && landing_bytes != 0) {
      landing_at_ = landing_start_ & (landing_bytes - 1);
      byte_len_ = std::min(byte_len_, landing_bytes - landing_at_);
    } else {
      payload_at_ = PayloadAt::buffer;
    }
  }

  WcStatus status() const { return status_; }
  WcOpcode opcode() const { return opcode_; }
  Carries carries() const { return carries_; }
  std::uint32_t imm_be() const { return imm_be_; }
  std::uint32_t byte_len() const { return byte_len_; }
  PayloadAt payload_at() const { return payload_at_; }
  // For a payload in the CQE; its bytes may change while they are copied, but their number does not.
  std::span<const std::byte> payload() const { return {payload_, byte_len_}; }
  // For a payload in the landing ring: its offset there, and the count of bytes ever allocated at its end.
  std::uint32_t landing_at() const { return landing_at_; }
  std::uint32_t landing_end() const { return landing_end_; }

 private:
  // Allows only the statuses that an initiator may give; every other is nonsense.
  static WcStatus sane(WcStatus status) {
    switch (status) {
      case WcStatus::success:
      case WcStatus::loc_len_err:
      case WcStatus::loc_prot_err:
      case WcStatus::mw_bind_err:  // of an invalidation
        return status;
      default:
        return WcStatus::loc_qp_op_err;
    }
  }

  const std::byte* payload_;
  std::uint32_t imm_be_, landing_start_, landing_end_, byte_len_, landing_at_ = 0;
  WcStatus status_;
  WcOpcode opcode_;
  PayloadAt payload_at_;
  Carries carries_;
};

}  // namespace weir::rnic
