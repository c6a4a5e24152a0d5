// "-MOVED 3999 127.0.0.1:6381" and "-ASK ...": a node names the owner of the slot that a request needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cluster/node_address.hpp"

namespace weir::cluster {

struct Redirect {
  bool once = false;  // ASK: for this request only, after ASKING; the slot does not move
  std::uint16_t slot = 0;
  NodeAddress to;
};

// `reply` is an error reply, with or without its '-'. nullopt: it is not a redirection. An empty host means
// the host of the node that answered.
std::optional<Redirect> read_redirect(std::string_view reply, std::string_view answered_host);

}  // namespace weir::cluster
