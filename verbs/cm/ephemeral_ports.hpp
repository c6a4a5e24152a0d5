// The ports that are given to whoever asks for any, as Linux has them: 32768 to 60999.
#pragma once

#include <cstdint>

namespace weir::cm {

inline constexpr std::uint16_t first_ephemeral = 32768;
inline constexpr std::uint16_t ephemeral_count = 28232;

}  // namespace weir::cm
