// `weir stat`: what the software NICs of this user's processes do.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "cli/weir/command.hpp"
#include "cli/weir/launch/drop_in_libraries.hpp"
#include "cli/weir/metrics_server.hpp"
#include "cli/weir/stat/live_screen.hpp"
#include "cli/weir/stat/nic_watch.hpp"
#include "cli/weir/stat/stat_options.hpp"
#include "cli/weir/stat/stat_text.hpp"

namespace weir::command {
namespace {

Sample look(NicWatch& watch, const StatOptions& options) {
  Sample sample = watch.look();
  if (!options.pids.empty())
    std::erase_if(sample.processes, [&](const WatchedProcess& p) {
      return std::ranges::find(options.pids, p.pid) == options.pids.end();
    });
  return sample;
}

TableWish wish_of(const StatOptions& options) {
  TableWish wish;
  wish.sort = options.sort;
  wish.queue_pairs = !options.processes_only;
  wish.columns = LiveScreen::columns();
  const char* const no_colour = std::getenv("NO_COLOR");
  wish.colour = wish.columns != SIZE_MAX && (no_colour == nullptr || *no_colour == '\0');
  return wish;
}

// A key that the table answers; false: it is to end.
bool obey(char key, TableWish& wish) {
  if (key == 'q') return false;
  if (key == 'p') wish.queue_pairs = !wish.queue_pairs;
  if (key == '<' || key == '>') {
    const auto keys = sort_keys();
    const auto at = static_cast<std::size_t>(std::ranges::find(keys, wish.sort) - keys.begin());
    wish.sort = keys[(at + (key == '>' ? 1 : keys.size() - 1)) % keys.size()];
  }
  return true;
}

void watch_on_screen(NicWatch& watch, const StatOptions& options) {
  using std::chrono::steady_clock, std::chrono::milliseconds, std::chrono::duration_cast;
  const milliseconds interval(static_cast<long>(options.interval_s * 1000));
  const LiveScreen screen;
  TableWish wish = wish_of(options);
  Sample before = look(watch, options), now = before;
  bool rates = false;  // the first screen has nothing to compare with
  for (unsigned long shown = 0;; ++shown) {
    const auto next = steady_clock::now() + interval;
    for (auto left = interval; left > milliseconds::zero() || steady_clock::now() < next;) {
      wish.lines = screen.lines() - 1;
      wish.columns = LiveScreen::columns();
      screen.draw(as_table(now, rates ? &before : nullptr, wish) +
                  fmt::format("sorted by {}   q quit   < > sort   p queue pairs", wish.sort));
      const auto key = screen.key(left);
      if (!key && steady_clock::now() >= next) break;
      if (key && !obey(*key, wish)) return;
      left = std::max(duration_cast<milliseconds>(next - steady_clock::now()), milliseconds(1));
    }
    if (options.count != 0 && shown == options.count) return;
    before = rates ? std::move(now) : std::move(before);
    now = look(watch, options);
    rates = true;
  }
}

void show(const std::string& text) { std::fputs(text.c_str(), stdout); }

void watch_in_lines(NicWatch& watch, const StatOptions& options) {
  Sample before = look(watch, options);
  for (unsigned long shown = 0; options.count == 0 || shown < options.count; ++shown) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    Sample now = look(watch, options);
    show(options.json ? as_json(now, &before) : as_table(now, &before, wish_of(options)) + "\n");
    if (std::fflush(stdout) != 0) return;  // main says so
    before = std::move(now);
  }
}

}  // namespace

int stat(std::span<const std::string> arguments) {
  const auto options = read_stat_options(arguments);
  if (!options) {
    if (options.error().status != 0) return complain("stat", options.error().text, options.error().status);
    std::fputs(options.error().text.c_str(), stdout);
    return 0;
  }
  const auto libraries = find_drop_in_libraries(options->library_directory);
  if (!libraries) return complain("stat", libraries.error(), 1);
  auto watch = NicWatch::open(*libraries);
  if (!watch) return complain("stat", watch.error(), 1);

  if (options->listen) {
    const std::string why = serve_metrics(
        *options->listen, [&] { return as_prometheus(look(*watch, *options)); },
        [](const std::string& where) {
          std::printf("weir stat: metrics at http://%s/metrics\n", where.c_str());
          std::fflush(stdout);
        });
    return complain("stat", why, 1);
  }
  if (options->prometheus) {
    show(as_prometheus(look(*watch, *options)));
  } else if (options->once) {
    const Sample now = look(*watch, *options);
    show(options->json ? as_json(now, nullptr) : as_table(now, nullptr, wish_of(*options)));
  } else if (!options->json && LiveScreen::possible()) {
    watch_on_screen(*watch, *options);
  } else {
    watch_in_lines(*watch, *options);
  }
  return 0;
}

}  // namespace weir::command
