// The blocks of a pcapng file that a capture of Ethernet packets needs (draft-ietf-opsawg-pcapng): the
// beginning of a section with its one interface, and a packet. Little-endian, time in nanoseconds.
//
// Sections whose beginnings are the same may be mixed: a packet of either is one of interface 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::wire {

std::vector<std::byte> pcapng_section(std::string_view application, std::string_view interface);

// Appends the packet, keeping only its first `snap` bytes.
void append_pcapng_packet(std::vector<std::byte>& to, std::uint64_t time_ns,
                          std::span<const std::byte> packet, std::size_t snap, std::string_view comment = {});

}  // namespace weir::wire
