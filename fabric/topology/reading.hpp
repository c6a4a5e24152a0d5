// Input for readers of network files: access to other files that a network names, and limits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace weir::fabric {

// Returns the text of another file by the name in the network; nullopt:
// it cannot be read.
using FileOpener = std::function<std::optional<std::string>(const std::string& name)>;

struct ReadLimits {
  std::uint32_t most_nodes = 200'000;  // and links; a typing error in a generator must not fill the memory
};

}  // namespace weir::fabric
