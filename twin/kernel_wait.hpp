// Proves that a thread sleeps in a call of the kernel that this library does not stand in front of: a C
// stream reads an empty pipe, pclose() waits for its child. All other threads of all programs wait meanwhile,
// so the call cannot end before one of them has run.
//
// The thread is stopped until the object is destroyed; then the kernel begins the call anew.
//
// Linux on x86-64. Single-threaded.
#pragma once

#include <sys/types.h>

#include <memory>
#include <utility>

#include "link/unique_fd.hpp"
#include "twin/stopped_thread.hpp"

namespace weir::twin {

class KernelWait {
 public:
  // nullptr: it does not sleep in such a call, and runs on.
  static std::unique_ptr<KernelWait> prove(pid_t process, pid_t thread);

  const char* call() const { return call_; }
  int descriptor() const { return descriptor_; }  // that it reads or writes; -1: it waits for a child
  // The call would end now. Of a child that is not known.
  bool is_over() const;

 private:
  KernelWait(const char* call, int descriptor, short events)
      : call_(call), descriptor_(descriptor), events_(events) {}

  const char* call_;
  int descriptor_;
  short events_;
  link::UniqueFd copy_;  // of the descriptor
  std::unique_ptr<StoppedThread> stopped_;
};

}  // namespace weir::twin
