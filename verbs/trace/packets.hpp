// The RoCEv2 packets that a work request stands for, as they would be on a wire that loses nothing: its
// requests, and the answers to them, at the time when it was executed.
//
// Each process shows what it asked for and how that was answered, so that the captures of two that talk hold
// each packet once. Pure: addresses, numbers and payload are given.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "rnic/queue_pair/send_queue.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {

// One queue pair and its peer.
struct Conversation {
  rnic::QpType type = rnic::QpType::rc;
  rnic::Qpn own, peer;
  wire::Route there, back;
  std::uint32_t mtu = 1024;
  std::uint32_t psn = 0;  // of the next request packet
  std::uint32_t msn = 0;  // messages that the peer has completed
};

using TakePacket = std::function<void(const wire::Frame&)>;

// `payload` is what the request carries or, of READs and atomics, what came back.
void packets_of(Conversation&, const rnic::SendWqe&, rnic::WcStatus, std::span<const std::byte> payload,
                const TakePacket&);
// Its first packet, and the answer that no receive is posted; nothing answers where the peer is silent.
void packets_of_refusal(const Conversation&, const rnic::SendWqe&, std::span<const std::byte> payload,
                        std::uint8_t rnr_timer, const TakePacket&);

}  // namespace weir::verbs
