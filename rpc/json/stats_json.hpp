// What a server counted (method_stats.hpp) as JSON, for `weir rpc stats --json` and the gateway's page. Pure.
#pragma once

#include <string>
#include <vector>

#include "rpc/json/json_body.hpp"
#include "rpc/method_stats.hpp"

namespace weir::rpc::json {

std::string stats_as_json(const std::vector<MethodReport>& reports, Layout layout);

}  // namespace weir::rpc::json
