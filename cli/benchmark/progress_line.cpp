#include "cli/benchmark/progress_line.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>

namespace weir::benchmark {

ProgressLine::ProgressLine() : on_terminal_(::isatty(STDERR_FILENO) == 1) {}

void ProgressLine::running(std::uint64_t requests_done, double elapsed_s) {
  if (!on_terminal_) return;
  fmt::print(stderr, "\r\x1b[K{}: {} requests in {:.1f} s, {:.0f}/s", title_, requests_done, elapsed_s,
             static_cast<double>(requests_done) / elapsed_s);
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

}  // namespace weir::benchmark
