// `weir stat`: what the software NICs of this user's processes do.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "cli/weir/command.hpp"
#include "cli/weir/launch/drop_in_libraries.hpp"
#include "cli/weir/metrics_server.hpp"
#include "cli/weir/stat/live_screen.hpp"
#include "cli/weir/stat/nic_watch.hpp"
#include "cli/weir/stat/rate_history.hpp"
#include "cli/weir/stat/stat_options.hpp"
#include "cli/weir/stat/stat_text.hpp"
#include "screen/terminal.hpp"

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

constexpr std::string_view keys_explained =
    "  < >            the column to sort by\n"
    "  p              lines for queue pairs, or for processes alone\n"
    "  arrows, j k    a line down, a line up; space, b: a page; g, G: the first, the last line\n"
    "  h, ?           this help, and back\n"
    "  q              the end\n";

struct View {
  TableWish wish;
  bool help = false;
};

// A key that the screen answers; false: it is to end.
bool obey(char key, View& view) {
  TableWish& wish = view.wish;
  const std::size_t page = std::max<std::size_t>(wish.lines, 8) - 4;
  switch (key) {
    case 'q':
      return false;
    case 'h':
    case '?':
      view.help = !view.help;
      break;
    case 'p':
      wish.queue_pairs = !wish.queue_pairs;
      break;
    case '<':
    case '>': {
      const auto keys = sort_keys();
      const auto at = static_cast<std::size_t>(std::ranges::find(keys, wish.sort) - keys.begin());
      wish.sort = keys[(at + (key == '>' ? 1 : keys.size() - 1)) % keys.size()];
      break;
    }
    case 'j':
      ++wish.first;
      break;
    case 'k':
      wish.first -= std::min<std::size_t>(wish.first, 1);
      break;
    case ' ':
      wish.first += page;
      break;
    case 'b':
      wish.first -= std::min(wish.first, page);
      break;
    case 'g':
      wish.first = 0;
      break;
    case 'G':
      wish.first = SIZE_MAX;
      break;
    default:
      break;
  }
  return true;
}

std::string help_text() {
  return fmt::format("weir stat: what each column means, per second unless it says otherwise\n{}\nkeys\n{}",
                     columns_explained(), keys_explained);
}

void watch_on_screen(NicWatch& watch, const StatOptions& options) {
  using std::chrono::steady_clock, std::chrono::milliseconds, std::chrono::duration_cast;
  const milliseconds interval(static_cast<long>(options.interval_s * 1000));
  const LiveScreen screen;
  View view{wish_of(options)};
  RateHistory history(speaks_utf8() ? RateHistory::Bars::blocks : RateHistory::Bars::ascii);
  Sample before = look(watch, options), now = before;
  bool rates = false;  // the first screen has nothing to compare with
  for (unsigned long shown = 0;; ++shown) {
    const auto next = steady_clock::now() + interval;
    for (auto left = interval; left > milliseconds::zero() || steady_clock::now() < next;) {
      const std::string past = history.line(LiveScreen::columns());
      view.wish.lines = screen.lines() - (past.empty() ? 1 : 2);
      view.wish.columns = LiveScreen::columns();
      if (view.help)
        screen.draw(help_text());
      else
        screen.draw(as_screen(now, rates ? &before : nullptr, view.wish) + past + (past.empty() ? "" : "\n") +
                    fmt::format("sorted by {}   q quit   h help   < > sort   p queue pairs", view.wish.sort));
      const auto key = screen.key(left);
      if (!key && steady_clock::now() >= next) break;
      if (key && !obey(*key, view)) return;
      left = std::max(duration_cast<milliseconds>(next - steady_clock::now()), milliseconds(1));
    }
    if (options.count != 0 && shown == options.count) return;
    before = rates ? std::move(now) : std::move(before);
    now = look(watch, options);
    history.add(operations_per_second(now, before));
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
    screen::print_wrapped(stdout, options.error().text);
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
