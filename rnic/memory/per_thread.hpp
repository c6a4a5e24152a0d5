// One T for each thread, made at its first use, which handlers of exit() may still use: they run after the
// main thread's thread_local objects are destroyed.
#pragma once

#include <utility>

namespace weir::rnic {

// Freed when the thread ends. One that is made after that is freed by nobody: the process is about to end.
template <class T>
T& per_thread() {
  static constinit thread_local T* mine = nullptr;
  if (mine == nullptr) {
    mine = new T;
    struct End {
      ~End() { delete std::exchange(mine, nullptr); }
    };
    [[maybe_unused]] static thread_local const End end;
  }
  return *mine;
}

}  // namespace weir::rnic
