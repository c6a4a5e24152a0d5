// What a reader of network files is given: the way to other files that a network names, and its limits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace weir::fabric {

// The text of another file that the network names, by the name as written there; nothing if it cannot be
// read.
using FileOpener = std::function<std::optional<std::string>(const std::string& name)>;

struct ReadLimits {
  std::uint32_t most_nodes = 200'000;  // and links; a typing error in a generator must not fill the memory
};

}  // namespace weir::fabric
