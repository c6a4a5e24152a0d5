// The codec of arguments that a server's own gateway hands over as JSON: they become MessagePack once the
// caller is known to be allowed to call. Never on the wire; from anybody else it is an unknown codec.
#pragma once

#include <cstdint>

namespace weir::rpc {

inline constexpr std::uint8_t json_codec = 255;

}  // namespace weir::rpc
