// CRC-64 with Jones's polynomial, bits reflected, no inversion: what ends RDB files and DUMP payloads.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::kv::rdb {

// The checksum of what `sum` stands for followed by `bytes`; that of nothing is 0.
std::uint64_t checksum(std::uint64_t sum, std::string_view bytes);

}  // namespace weir::kv::rdb
