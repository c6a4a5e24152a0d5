// What a hub has, as an array that it makes when it is asked for: bytes under a name of the hub's own.
//
// One entry after the other: VERSION BYTES\tWHAT\tNAME and a zero. Pure, but for the catalogue's lock.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tensor/catalogue.hpp"

namespace weir::tensor {

inline constexpr std::string_view names_of_hub = "weir.names";
inline constexpr std::size_t most_listed = 1 << 16;

// A version of its own each time, whose metadata has the number `metadata_id`.
VersionPtr make_listing(const Catalogue& catalogue, std::uint64_t metadata_id);
// Errc::protocol.
Result<std::vector<CatalogueEntry>> parse_listing(std::span<const std::byte> bytes);

}  // namespace weir::tensor
