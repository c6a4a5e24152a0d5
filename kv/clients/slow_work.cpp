#include "kv/clients/slow_work.hpp"

#include <algorithm>

#include "kv/clients/client.hpp"
#include "kv/clients/monitors.hpp"
#include "kv/command/command.hpp"
#include "kv/core/server_common.hpp"

namespace weir::kv {

namespace {

std::size_t digits(std::size_t number) {
  std::size_t count = 1;
  for (; number >= 10; number /= 10) ++count;
  return count;
}

// A negative limit: nothing is large.
std::size_t bytes_of(std::int64_t limit, std::size_t unlimited) {
  return limit < 0 ? unlimited : static_cast<std::size_t>(limit);
}

}  // namespace

// "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
std::size_t request_bytes(Arguments arguments) {
  constexpr std::size_t around_count = 3;
  constexpr std::size_t around_word = 5;
  std::size_t bytes = around_count + digits(arguments.size());
  for (const Argument& word : arguments) bytes += around_word + digits(word.text.size()) + word.text.size();
  return bytes;
}

// Called if the command may have been slow or large; applies the exact limits.
void SlowWork::note_command(const Client& client, const Command& command, Arguments arguments,
                            const CommandCost& cost) {
  const Settings& settings = server_.settings;
  const std::int64_t limit_us = settings.slowlog_log_slower_than_us;
  const std::int64_t event_ms = settings.latency_monitor_threshold_ms;
  const double per_us = server_.cycle_rate.per_us();
  constexpr double never = 1e18;
  const double least_us = std::min(limit_us < 0 ? never : static_cast<double>(limit_us),
                                   event_ms == 0 ? never : static_cast<double>(event_ms) * 1000);
  slow_cycles_ = least_us >= never ? ~std::uint64_t{0} : static_cast<std::uint64_t>(least_us * per_us);
  large_request_ = bytes_of(settings.commandlog_request_larger_than, no_limit);
  large_reply_ = bytes_of(settings.commandlog_reply_larger_than, no_limit);
  note(command.has(flag::fast) ? "fast-command" : "command", cost.cycles);
  if (command.has(flag::skip_slowlog)) return;
  const auto add = [&](Log which, std::int64_t amount, std::int64_t most) {
    log(which).add(server_.now_ms / 1000, amount, without_passwords(command, arguments),
                   client.connection().peer_address(), client.name, static_cast<std::size_t>(most));
  };
  const auto us = static_cast<std::int64_t>(static_cast<double>(cost.cycles) / per_us);
  if (limit_us >= 0 && us >= limit_us) add(Log::slow, us, settings.slowlog_max_len);
  if (cost.request_bytes >= large_request_) {
    add(Log::large_request, static_cast<std::int64_t>(cost.request_bytes),
        settings.commandlog_large_request_max_len);
  }
  if (cost.reply_bytes >= large_reply_) {
    add(Log::large_reply, static_cast<std::int64_t>(cost.reply_bytes),
        settings.commandlog_large_reply_max_len);
  }
}

void SlowWork::note(std::string_view kind, std::uint64_t cycles) {
  if (server_.settings.latency_monitor_threshold_ms == 0) return;
  const auto ms = static_cast<std::int64_t>(static_cast<double>(cycles) / server_.cycle_rate.per_us() / 1000);
  if (ms < server_.settings.latency_monitor_threshold_ms) return;
  // Reads the time anew: the server's clock was read before the command.
  events.note(kind, server_.surroundings.clock_us() / 1'000'000, ms);
}

}  // namespace weir::kv
