// CRC-64 with Jones's polynomial, bits reflected, no inversion: the checksum of RDB files and DUMP payloads.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::kv::rdb {

// Extends `sum`, the checksum of the preceding bytes, by `bytes`; the checksum of no bytes is 0.
std::uint64_t checksum(std::uint64_t sum, std::string_view bytes);

}  // namespace weir::kv::rdb
