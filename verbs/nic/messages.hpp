// The NIC's control messages between processes. All but two have the same body: two numbers; some carry a
// descriptor.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "link/same_host.hpp"

namespace weir::verbs::message {

// number: the parked QPN (receiver's); 0: whatever is parked, and the sender's mover runs
inline constexpr std::uint16_t kick = link::kind::nic_first;
inline constexpr std::uint16_t cq_event = kick + 1;  // number: index of the receiver's CQ
// number: the receiver's QPN that was moved to err, extra: rnic::Fault
inline constexpr std::uint16_t fault = kick + 2;
inline constexpr std::uint16_t srq_limit = kick + 3;     // number: index of the receiver's SRQ
inline constexpr std::uint16_t want_window = kick + 4;   // number: window id
inline constexpr std::uint16_t window = kick + 5;        // number: window id, extra: bytes, fd: the file
inline constexpr std::uint16_t window_gone = kick + 6;   // number: window id
inline constexpr std::uint16_t want_channel = kick + 7;  // number: channel
inline constexpr std::uint16_t channel = kick + 8;       // number: channel, fd: its eventfd
inline constexpr std::uint16_t channel_gone = kick + 9;  // number: channel
inline constexpr std::uint16_t want_mover = kick + 10;   // the sender is going to hand copies over
// number: index of the receiver's SRQ, extra: its incarnation << 32 | the WQE that the sender gives back
inline constexpr std::uint16_t return_receive = kick + 11;
// number: the receiver's QPN, which the sender had open
inline constexpr std::uint16_t qp_closed = kick + 12;
// A packet from another host that came to the sender, who shares the port with us. A body of its own:
// PassedOn, then the bytes.
inline constexpr std::uint16_t packet = kick + 13;
// number: the receiver's QPN, extra: the message that found a receive withheld there
inline constexpr std::uint16_t withheld = kick + 14;
// A stream from another host that the sender accepted for us. Its greeting, as it arrived; fd: the
// connection.
inline constexpr std::uint16_t stream = kick + 15;
inline constexpr std::uint16_t last = stream;

struct PassedOn {
  std::array<std::uint8_t, 16> source, destination;
  std::uint32_t interface;
  std::uint16_t source_port, likely_id;
  std::uint8_t traffic_class, hop_limit;
};

struct Body {
  std::uint32_t number = 0;
  std::uint32_t reserved = 0;
  std::uint64_t extra = 0;
};

inline std::optional<Body> parse(std::span<const std::byte> bytes) {
  Body body;
  if (bytes.size() != sizeof body) return std::nullopt;
  std::memcpy(&body, bytes.data(), sizeof body);
  return body;
}

inline link::Result<void> send(link::Neighbour& to, std::uint16_t kind, std::uint32_t number,
                               std::uint64_t extra = 0, std::span<const int> fds = {}) {
  const Body body{number, 0, extra};
  return to.send(kind, std::as_bytes(std::span(&body, 1)), fds);
}

}  // namespace weir::verbs::message
