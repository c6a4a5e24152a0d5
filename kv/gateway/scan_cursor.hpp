// The cursor of a SCAN through the gateway: a node's own cursor, and which node it belongs to. A SCAN visits
// one node after another, in the order of their numbers in the slot map; the client sees one scan that ends
// with 0, as at a single server.
//
// Each key that stays at its node for the whole scan is returned, as SCAN promises at each node. A key whose
// slot moves meanwhile to a node already visited is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "kv/command/cursor.hpp"

namespace weir::kv::cluster {

struct ScanCursor {
  static constexpr unsigned node_bits = 13;  // enough for SlotMap::most_nodes
  static constexpr std::uint64_t largest_at = UINT64_MAX >> node_bits;

  std::uint64_t at = 0;    // the node's own cursor
  std::uint16_t node = 0;  // the node's number in the slot map; 0: the scan begins

  std::uint64_t packed() const { return at << node_bits | node; }
  // Nothing if it is no cursor; SCAN itself then reports the error.
  static std::optional<ScanCursor> read(std::string_view text) {
    const auto number = read_cursor(text);
    if (!number) return std::nullopt;
    return ScanCursor{*number >> node_bits,
                      static_cast<std::uint16_t>(*number & ((std::uint64_t{1} << node_bits) - 1))};
  }
};

}  // namespace weir::kv::cluster
