// --intrinsic-latency: a loop of short computations notices when the system runs something else.
#include <fmt/core.h>

#include <chrono>
#include <cstdint>

#include "cli/client/standard_output.hpp"
#include "cli/shell/interrupt.hpp"
#include "cli/shell/tasks.hpp"

namespace weir::shell {
namespace {

using Clock = std::chrono::steady_clock;

// A microsecond's work that the compiler cannot leave out.
void compute(std::uint64_t& state) {
  for (int i = 0; i < 500; ++i) state = state * 6364136223846793005 + 1442695040888963407;
  asm volatile("" : "+r"(state));
}

}  // namespace

int measure_own_latency(const Options& options) {
  const Interrupt interrupt;  // ends it early, with the figures so far
  const auto began = Clock::now();
  const auto until = began + std::chrono::duration_cast<Clock::duration>(
                                 std::chrono::duration<double>(options.measurement.own_latency_s));
  std::uint64_t state = 1, runs = 0;
  std::int64_t longest_us = 0;
  auto before = began;
  while (before < until && !interrupt.came()) {
    compute(state);
    const auto after = Clock::now();
    ++runs;
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(after - before).count();
    before = after;
    if (us <= longest_us) continue;
    longest_us = us;
    fmt::print("Max latency so far: {} microseconds.\n", us);
    client::flush_output();
    before = Clock::now();  // the printing does not count
  }
  const double each_us = runs == 0 ? 0
                                   : std::chrono::duration<double, std::micro>(Clock::now() - began).count() /
                                         static_cast<double>(runs);
  fmt::print("\n{} total runs (avg latency: {:.4f} microseconds / {:.2f} nanoseconds per run).\n", runs,
             each_us, each_us * 1000);
  fmt::print("Worst run took {:.0f}x longer than the average latency.\n",
             each_us > 0 ? static_cast<double>(longest_us) / each_us : 0);
  return 0;
}

}  // namespace weir::shell
