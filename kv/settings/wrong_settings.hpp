// Settings that contradict --cluster-gateway.
#pragma once

#include <string>

#include "kv/settings/settings.hpp"

namespace weir::kv::cluster {

// The cause and the next step, to show to a user; empty if nothing is wrong.
std::string wrong_for_gateway(const Settings& settings);

}  // namespace weir::kv::cluster
