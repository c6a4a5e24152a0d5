#include "fabric/plan/published_headroom.hpp"

#include <algorithm>
#include <cmath>

namespace weir::fabric {

std::optional<std::uint64_t> published_xoff(std::span<const HeadroomRow> table,
                                            const SonicHeadroomInput& port) {
  const auto first = std::ranges::lower_bound(table, port.speed_bps, {}, &HeadroomRow::speed_bps);
  if (first == table.end()) return std::nullopt;
  const auto rows = std::ranges::equal_range(table, first->speed_bps, {}, &HeadroomRow::speed_bps);
  const auto longer = std::ranges::lower_bound(rows, port.cable_m, {}, &HeadroomRow::cable_m);
  if (longer == rows.begin()) return longer->xoff_bytes;
  const auto& shorter = *(longer - 1);
  if (longer == rows.end()) {
    auto longest = port;
    longest.cable_m = shorter.cable_m;
    return shorter.xoff_bytes + sonic_headroom(port).xoff - sonic_headroom(longest).xoff;
  }
  const double part = (port.cable_m - shorter.cable_m) / (longer->cable_m - shorter.cable_m);
  return static_cast<std::uint64_t>(std::ceil(
      std::lerp(static_cast<double>(shorter.xoff_bytes), static_cast<double>(longer->xoff_bytes), part)));
}

}  // namespace weir::fabric
