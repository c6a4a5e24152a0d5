// What a server counted of its functions, as a table, JSON or Prometheus text.
#pragma once

#include "rpc/client.hpp"

namespace weir::command {

enum class StatsFormat { table, json, prometheus };
// The exit status.
asio::awaitable<int> show_stats(rpc::Client& client, StatsFormat format);

}  // namespace weir::command
