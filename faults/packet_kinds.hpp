// The kinds of packets that a fault can name (`opcode=ack`), and what a packet is called in a report.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::faults {

// What is needed of a packet's headers.
struct Headers {
  std::uint8_t opcode = 0;
  std::uint32_t destination = 0;  // QPN
  std::uint32_t psn = 0;
  std::uint8_t syndrome = 0;  // of an acknowledgement
};
// nullopt: too short for a BTH.
std::optional<Headers> headers_of(std::span<const std::byte> from_bth);

// Where its payload is, in a packet from the BTH to the ICRC; nullopt: it has none.
std::optional<std::span<const std::byte>> payload_of(std::span<const std::byte> from_bth);

struct PacketKind {
  std::string_view name, what;
  bool (*is)(const Headers&);
};
std::span<const PacketKind> packet_kinds();

// Packets whose PSN the other end chose: acknowledgements and the answers to READs and atomics.
bool is_response(const Headers&);
// "SEND_MIDDLE", "ACK", "RNR_NAK".
std::string name_of(const Headers&);

}  // namespace weir::faults
