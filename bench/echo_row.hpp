// What makes the rows of the echo programs comparable: a core for each end, and the row itself.
#pragma once

#include <fmt/core.h>
#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <vector>

#include "bench/pin.hpp"

namespace weir::bench {

// Processor time that another process has used, all its threads, its system calls included.
inline double processor_seconds(pid_t process) {
  clockid_t clock;
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

struct EchoRow {
  std::string_view name;
  std::size_t bytes = 0;
  int in_flight = 0;
  bool each = false;  // a connection for each call in flight
  double seconds = 0;
  double server_seconds = 0;                // of processor time, meanwhile
  std::vector<std::uint64_t>& nanoseconds;  // of each call; gets sorted
  std::uint64_t failed = 0;

  // Without a line end: the program may append more.
  void print() {
    std::ranges::sort(nanoseconds);
    const auto at = [&](double q) {
      if (nanoseconds.empty()) return 0.0;
      return nanoseconds[static_cast<std::size_t>(q * static_cast<double>(nanoseconds.size() - 1))] / 1000.0;
    };
    const auto calls = static_cast<double>(nanoseconds.size());
    const double rate = calls / seconds;
    fmt::print(
        "{:<10} {:>8} B {:>4} in flight {:>5} {:>11.0f} qps {:>8.2f} Gb/s  p50 {:>9.1f}  p90 {:>9.1f}  p99 "
        "{:>9.1f} us {:>9.0f} a server core",
        name, bytes, in_flight, each ? "each" : "one", rate, rate * static_cast<double>(bytes) * 8e-9,
        at(0.5), at(0.9), at(0.99), server_seconds > 0 ? calls / server_seconds : 0.0);
    if (failed > 0) fmt::print("  {} FAILED", failed);
  }
};

}  // namespace weir::bench
