// Headroom as SONiC's pg_profile_lookup.ini has it for a switch. Vendors measured it on the chip, so a plan
// never goes below it, whatever a formula says.
#pragma once

#include <optional>
#include <span>

#include "fabric/plan/headroom.hpp"
#include "fabric/topology/switch_model.hpp"

namespace weir::fabric {

// The xoff of a port's speed and cable, from rows ordered by speed and cable:
// - of the port's speed, or of the next faster one in the table, which needs no less;
// - between two cables on the line through both; below the shortest that of the shortest;
// - beyond the longest cable, that of the longest and what the formula adds from there on.
// nullopt: the table has no speed so high.
std::optional<std::uint64_t> published_xoff(std::span<const HeadroomRow> table,
                                            const SonicHeadroomInput& port);

}  // namespace weir::fabric
