// A shared receive queue as an initiator sees it: takes posted WQEs in the target's memory.
//
// Any number of initiators, in any process, take receives one at a time. Only the table of WQEs is checked
// once, on connecting; anything that a neighbour may change later is checked at each claim.
#pragma once

#include <atomic>
#include <cstdint>

#include "rnic/peer.hpp"

namespace weir::rnic {

struct TakenReceive {
  const ReceiveWqe* wqe = nullptr;
  std::uint32_t number = 0;
};

class RemoteSrq {
 public:
  // False when its context makes no sense (yet).
  bool connect(Peer& peer, std::uint32_t index);
  bool connected() const { return ctx_ != nullptr; }

  std::uint32_t pd() const { return ctx_->pd; }
  SrqContext& context() const { return *ctx_; }
  std::uint32_t max_sge() const {
    return 1 + (stride_ - static_cast<std::uint32_t>(sizeof(ReceiveWqe))) /
                   static_cast<std::uint32_t>(sizeof(Sge));
  }

  bool available() const;
  bool claim(Qpn own, TakenReceive&) const;
  // Gives a claimed receive that will not be completed back to its owner, the only process that posts.
  void give_back(const TakenReceive&) const;

 private:
  Peer* peer_ = nullptr;
  SrqContext* ctx_ = nullptr;
  std::atomic<std::uint64_t>* ring_ = nullptr;
  std::byte* wqes_ = nullptr;
  std::uint32_t index_ = 0, incarnation_ = 0, ring_mask_ = 0, stride_ = 0, count_ = 0;
};

}  // namespace weir::rnic
