// The slot, one of a cluster's 16384, of a key (Redis Cluster specification, "Key distribution model"): CRC16
// (XMODEM) of the key, or of the part between the first '{' and the next '}' if that is not empty.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::cluster {

inline constexpr std::uint16_t slot_count = 16384;

std::uint16_t key_slot(std::string_view key);

}  // namespace weir::cluster
