// The ports for callers that ask for any port, as on Linux: 32768 to 60999.
#pragma once

#include <cstdint>

namespace weir::cm {

inline constexpr std::uint16_t first_ephemeral = 32768;
inline constexpr std::uint16_t ephemeral_count = 28232;

}  // namespace weir::cm
