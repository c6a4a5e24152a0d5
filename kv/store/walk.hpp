// In which direction an ordered collection is walked through.
#pragma once

#include <cstdint>

namespace weir::kv {

enum class Walk : std::uint8_t { forward, backward };

}  // namespace weir::kv
