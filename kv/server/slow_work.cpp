#include "kv/server/slow_work.hpp"

#include <algorithm>

#include "kv/commands/command.hpp"
#include "kv/server/client.hpp"
#include "kv/server/monitors.hpp"
#include "kv/server/server_common.hpp"

namespace weir::kv {

// Called if the command may have been slow; applies the exact limits.
void SlowWork::note_command(const Client& client, const Command& command, Arguments arguments,
                            std::uint64_t cycles) {
  const std::int64_t limit_us = server_.settings.slowlog_log_slower_than_us;
  const std::int64_t event_ms = server_.settings.latency_monitor_threshold_ms;
  const double per_us = server_.cycle_rate.per_us();
  constexpr double never = 1e18;
  const double least_us = std::min(limit_us < 0 ? never : static_cast<double>(limit_us),
                                   event_ms == 0 ? never : static_cast<double>(event_ms) * 1000);
  slow_cycles_ = least_us >= never ? ~std::uint64_t{0} : static_cast<std::uint64_t>(least_us * per_us);
  note(command.has(flag::fast) ? "fast-command" : "command", cycles);
  if (command.has(flag::skip_slowlog)) return;
  const auto us = static_cast<std::int64_t>(static_cast<double>(cycles) / per_us);
  if (limit_us < 0 || us < limit_us) return;
  log.add(server_.now_ms / 1000, us, without_passwords(command, arguments),
          client.connection().peer_address(), client.name,
          static_cast<std::size_t>(server_.settings.slowlog_max_len));
}

void SlowWork::note(std::string_view kind, std::uint64_t cycles) {
  if (server_.settings.latency_monitor_threshold_ms == 0) return;
  const auto ms = static_cast<std::int64_t>(static_cast<double>(cycles) / server_.cycle_rate.per_us() / 1000);
  if (ms < server_.settings.latency_monitor_threshold_ms) return;
  // Reads the time anew: the server's clock was read before the command.
  events.note(kind, server_.surroundings.clock_us() / 1'000'000, ms);
}

}  // namespace weir::kv
