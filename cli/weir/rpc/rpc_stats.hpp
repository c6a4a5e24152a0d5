// Shows what a server counted for its functions, as a table, JSON or Prometheus text.
#pragma once

#include "rpc/client.hpp"

namespace weir::command {

enum class StatsFormat { table, json, prometheus };
// Returns the exit status.
asio::awaitable<int> show_stats(rpc::Client& client, StatsFormat format);

}  // namespace weir::command
