// The list of a hub's names, which a peer fetches under a reserved name: entries <-> bytes.
//
// Each entry is VERSION BYTES\tWHAT\tNAME and a zero byte. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/error.hpp"

namespace weir::tensor {

inline constexpr std::string_view names_of_hub = "weir.names";
inline constexpr std::size_t most_listed = 1 << 16;

struct CatalogueEntry {
  std::string name;
  std::string what;  // "float32 (2, 3)", "tree of 300"
  std::uint64_t version = 0, bytes = 0;
};

// Names must not contain zeros, nor `what` tabs.
std::vector<std::byte> encode_listing(std::span<const CatalogueEntry> entries);
// Errc::protocol.
Result<std::vector<CatalogueEntry>> parse_listing(std::span<const std::byte> bytes);

}  // namespace weir::tensor
