// The RoCEv2 packets that a work request would be on a wire that loses nothing: its requests and their
// responses, at the time of execution.
//
// Each process records its own requests and the responses to them, so the captures of two communicating
// processes together hold each packet once. Pure: addresses, numbers and payload are passed in.
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

// `payload` is what the request carries; for READs and atomics it is what the response carries.
void packets_of(Conversation&, const rnic::SendWqe&, rnic::WcStatus, std::span<const std::byte> payload,
                const TakePacket&);
// The first packet and its RNR NAK. If the peer is silent, there is no answer.
void packets_of_refusal(const Conversation&, const rnic::SendWqe&, std::span<const std::byte> payload,
                        std::uint8_t rnr_timer, const TakePacket&);

}  // namespace weir::verbs
