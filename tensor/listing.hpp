// What a hub has, as bytes that a peer fetches under a name of the hub's own: entries <-> bytes.
//
// One entry after the other: VERSION BYTES\tWHAT\tNAME and a zero. Pure.
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

// Names have no zeros in them, and `what` no tabs.
std::vector<std::byte> encode_listing(std::span<const CatalogueEntry> entries);
// Errc::protocol.
Result<std::vector<CatalogueEntry>> parse_listing(std::span<const std::byte> bytes);

}  // namespace weir::tensor
