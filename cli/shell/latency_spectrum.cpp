// --latency-dist: classes of round trips, finer where differences matter, and how many fall in each as a
// color.
#include <fmt/core.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "cli/client/standard_output.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

using Clock = std::chrono::steady_clock;

struct LatencyClass {
  std::int64_t most_us;
  char mark;
  std::uint64_t count = 0;
};

// From black over blue, green and red to white, numbers of the terminal's 256 colors.
constexpr std::array palette{0,   233, 234, 235, 237, 239, 241, 243, 245, 247,
                             144, 143, 142, 184, 226, 214, 208, 202, 196};
constexpr int legend_every = 20;

std::array<LatencyClass, 14> classes() {
  return {{{10, '.'},
           {125, '-'},
           {250, '*'},
           {500, '#'},
           {1'000, '1'},
           {2'000, '2'},
           {5'000, '5'},
           {10'000, 'A'},
           {20'000, 'B'},
           {50'000, 'E'},
           {100'000, 'F'},
           {500'000, 'J'},
           {1'000'000, 'K'},
           {std::numeric_limits<std::int64_t>::max(), '?'}}};
}

void show_legend() {
  fmt::print(
      "---------------------------------------------\n"
      ". - * #          .01 .125 .25 .5 milliseconds\n"
      "1,2,5            up to 1, 2, 5 milliseconds\n"
      "A,B,E            up to 10, 20, 50 milliseconds\n"
      "F,J,K            up to .1, .5, 1 second\n"
      "?                longer\nfrom 0 to 100%: ");
  for (const int color : palette) fmt::print("\x1b[48;5;{}m ", color);
  fmt::print("\x1b[0m\n---------------------------------------------\n");
}

void show(std::span<LatencyClass> seen, std::uint64_t total) {
  fmt::print("\x1b[38;5;0m");
  for (LatencyClass& one : seen) {
    const double share = static_cast<double>(one.count) / static_cast<double>(total);
    const auto color = static_cast<std::size_t>(std::ceil(share * (palette.size() - 1)));
    fmt::print("\x1b[48;5;{}m{}", palette[color], one.mark);
    one.count = 0;
  }
  fmt::print("\x1b[0m\n");
  client::flush_output();
}

}  // namespace

int show_latency_spectrum(client::Session& session, const Options& options) {
  const std::chrono::duration<double> interval(options.interval_s > 0 ? options.interval_s : 1);
  const std::vector<std::string> ping{"PING"};
  auto seen = classes();
  auto shown_at = Clock::now();
  std::uint64_t total = 0;
  for (int lines = 0;;) {
    const auto before = Clock::now();
    const auto reply = session.ask(ping);
    if (!reply) return failed(reply.error());
    const auto us = std::chrono::ceil<std::chrono::microseconds>(Clock::now() - before).count();
    auto one = seen.begin();
    while (us > one->most_us) ++one;
    ++one->count;
    ++total;
    if (Clock::now() - shown_at > interval) {
      if (lines++ % legend_every == 0) show_legend();
      show(seen, std::exchange(total, 0));
      shown_at = Clock::now();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace weir::shell
