// The sizes of an RdmaLink's parts. It uses 288 KiB for receives and send blocks, and a table of records and
// landing places of 1 MiB, which is paged in on use (real NICs pin it).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "tensor/link/wire.hpp"

namespace weir::tensor::shape {

inline constexpr std::uint16_t window = 64;
inline constexpr std::uint32_t receives = window + 4;  // empty SENDs that return credits use the spare ones
inline constexpr std::uint32_t send_blocks = 16;
inline constexpr std::uint32_t send_depth = 256;
inline constexpr std::uint32_t signal_interval = 64;
inline constexpr std::uint32_t inline_bytes = 256;
inline constexpr int most_pieces = 16;

// The most that one work request carries, and that one connection posts before others have their turn.
inline constexpr std::size_t chunk_bytes = std::size_t{4} << 20;
inline constexpr std::size_t turn_bytes = std::size_t{16} << 20;

// How long a peer may let a transfer wait for a receive.
inline constexpr std::chrono::seconds longest_stall{10};

inline constexpr std::size_t landing_bytes = std::size_t{16} << 10;
inline constexpr std::size_t records_bytes = wire::slots * wire::record_bytes;
inline constexpr std::size_t landing_begin = 4096;
constexpr std::size_t landing_at(std::uint32_t slot) { return landing_begin + slot * landing_bytes; }
inline constexpr std::size_t table_bytes = landing_begin + wire::slots * landing_bytes;
static_assert(records_bytes <= landing_begin);

}  // namespace weir::tensor::shape
