#include "kv/core/server_common.hpp"

#include <utility>

namespace weir::kv {

ServerCommon::ServerCommon(asio::io_context& context, Settings initial, Surroundings given,
                           Strangers::Close close_late)
    : io(context),
      settings(std::move(initial)),
      surroundings(std::move(given)),
      strangers(settings, std::move(close_late)),
      random_bits(surroundings.seed),
      run_id(random_id()),
      history(random_id()) {
  started_ms = surroundings.steady_us() / 1000;
  use_clock.chance = [this] { return std::generate_canonical<double, 32>(random_bits); };
  refresh_time();
}

std::string ServerCommon::random_id() {
  std::string id;
  while (id.size() < repl::History::id_size) id += "0123456789abcdef"[random() % 16];
  return id;
}

void ServerCommon::log(LogLevel level, std::string_view text) const {
  if (static_cast<int>(level) >= settings.loglevel) surroundings.log(level, text);
}

void ServerCommon::move_use_clock() {
  constexpr std::int64_t minute_ms = 60'000;
  // Restored keys may have been idle for longer than the server has run: leave room for three years.
  constexpr std::int64_t tick_at_start = 1 << 30;
  last_tick = steady_ms / use_tick_ms;
  use_clock.tick = static_cast<std::uint32_t>(tick_at_start + last_tick - started_ms / use_tick_ms);
  use_clock.minute = static_cast<std::uint32_t>((steady_ms - started_ms) / minute_ms);
  rates.sample(steady_ms, stats);
  heap_marks.sample();
}

}  // namespace weir::kv
