// SONiC's platform.json: the ports of a switch, and how each can be split.
#pragma once

#include <string_view>
#include <vector>

#include "fabric/topology/port_range.hpp"

namespace weir::fabric {

// The ports, ordered by number; empty: there are none, or the text is not JSON. Modes that split a port
// unevenly ("2x400G(4)+1x800G(4)") are left out.
std::vector<PortRange> read_platform_json(std::string_view text);

}  // namespace weir::fabric
