// What does not go together with --cluster-gateway.
#pragma once

#include <string>

#include "kv/server/settings.hpp"

namespace weir::kv::cluster {

// Empty: nothing is wrong. Otherwise the cause and the next step, fit to show a user.
std::string wrong_for_gateway(const Settings& settings);

}  // namespace weir::kv::cluster
