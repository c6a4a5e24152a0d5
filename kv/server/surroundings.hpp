// What the program around a server gives it; see kv/main.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kv/persistence/disk.hpp"
#include "kv/server/log_line.hpp"

namespace weir::kv {

struct Surroundings {
  std::function<std::int64_t()> clock_us;  // since 1970
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
