// The messages on a connection between processes of two users: first a greeting with the sender's slot, then
// runs of packets, each in one message behind a header that holds what an IP header would.
//
// The sender is a stranger: only these two have a representation, and every field is checked. Integers are in
// the byte order of this host, which both ends are on. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "link/same_host.hpp"

namespace weir::link {

inline constexpr std::size_t greeting_bytes = 8;
inline constexpr std::size_t run_header_bytes = 40;
inline constexpr std::size_t max_carried_packets = 64;
inline constexpr std::size_t max_carried_bytes = 65'507;  // of a run, without the header

std::array<std::byte, greeting_bytes> encode_greeting(Slot slot);
// The slot; nullopt: no greeting.
std::optional<Slot> parse_greeting(std::span<const std::byte> message);

// Packets that lie behind each other, BTH to ICRC: all of `segment` bytes, the last may be shorter.
struct CarriedRun {
  std::span<const std::byte> bytes;
  std::uint16_t segment = 0;
  std::uint8_t traffic_class = 0, hop_limit = 0;
  std::array<std::uint8_t, 16> source{}, destination{};  // GIDs
};

std::array<std::byte, run_header_bytes> encode_run_header(const CarriedRun& run);
// A view into the message; nullopt: no run.
std::optional<CarriedRun> parse_run(std::span<const std::byte> message);

}  // namespace weir::link
