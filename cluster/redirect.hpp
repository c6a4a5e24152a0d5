// "-MOVED 3999 127.0.0.1:6381" and "-ASK ...": a node says who has the slot that a request is about.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cluster/node_address.hpp"

namespace weir::cluster {

struct Redirect {
  bool once = false;  // ASK: this request only, and after ASKING; the slot stays where it is
  std::uint16_t slot = 0;
  NodeAddress to;
};

// `reply` is an error reply as it came, or its text without the '-'. Nothing: it is not a redirection. An
// empty host stands for that of the node that answered.
std::optional<Redirect> read_redirect(std::string_view reply, std::string_view answered_host);

}  // namespace weir::cluster
