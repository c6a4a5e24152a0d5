// Whether another thread sleeps in the kernel, for tests of what wakes it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

namespace weir::sockets::test {

inline bool sleeps(pid_t thread) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string line{std::istreambuf_iterator<char>(stat), {}};
  const auto name = line.rfind(')');
  return name != std::string::npos && line.compare(name, 3, ") S") == 0;
}

// `id` is 0 until the thread has begun.
inline void await_sleep_of(const std::atomic<pid_t>& id) {
  while (id == 0 || !sleeps(id)) std::this_thread::yield();
}

}  // namespace weir::sockets::test
