// What the program around a server gives it; see kv/main.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kv/core/disk.hpp"
#include "kv/core/log_line.hpp"

namespace weir::kv {

struct Surroundings {
  // Since 1970, by the clock of the system, which others set. Only for what is a time of the day: when keys
  // expire, and what is shown or kept as a date.
  std::function<std::int64_t()> clock_us;
  // Since 1970 when the program started, and from there on evenly, whatever is done to the other clock. All
  // durations are differences of this one.
  std::function<std::int64_t()> steady_us;
  LogLine log;
  std::uint64_t seed = 0;
  std::string executable;
  std::string config_file;
  std::string library_path;    // LD_LIBRARY_PATH, which may hold RDMA libraries
  std::function<void()> stop;  // SHUTDOWN
  // Asks the system for descriptors for so many clients; returns how many it can serve. Empty: any number.
  std::function<std::int64_t(std::int64_t clients)> make_way_for_clients;
  Disk disk;
};

}  // namespace weir::kv
