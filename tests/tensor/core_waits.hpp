// How long threads of this process waited for a core, according to the kernel: the part of a delay that the
// machine caused.
#pragma once

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace weir::tensor::testing_support {

inline std::chrono::nanoseconds core_wait_of(const std::string& task) {
  std::ifstream file(task + "/schedstat");
  long long ran = 0, waited = 0;
  file >> ran >> waited;  // stays 0 if the thread has just ended or the kernel does not count
  return std::chrono::nanoseconds(waited);
}

inline std::chrono::nanoseconds core_wait_of_this_thread() { return core_wait_of("/proc/thread-self"); }

// The sum over all threads except the one with this id.
inline std::chrono::nanoseconds core_waits_but_of(pid_t one) {
  std::chrono::nanoseconds waited{0};
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task"))
    if (each.path().filename() != std::to_string(one)) waited += core_wait_of(each.path());
  return waited;
}

}  // namespace weir::tensor::testing_support
