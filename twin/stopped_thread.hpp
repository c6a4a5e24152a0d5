// A thread of another process that this one has stopped (ptrace). It is let go as if nobody had looked: a
// signal that came for it meanwhile is delivered, and its parent sees its end.
//
// A process has one tracer. Linux on x86-64. Single-threaded.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <memory>
#include <optional>

namespace weir::twin {

class StoppedThread {
 public:
  // nullptr: it has ended, or a signal came for it, or it must not be traced; it runs on.
  static std::unique_ptr<StoppedThread> stop(pid_t process, pid_t thread);
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  pid_t process() const { return process_; }
  pid_t thread() const { return thread_; }
  // nullopt: it was killed.
  std::optional<user_regs_struct> registers() const;
  // One instruction. False: a signal came for it, or it has ended; then it is of no use any more.
  bool step();

 private:
  StoppedThread(pid_t process, pid_t thread) : process_(process), thread_(thread) {}
  bool wait_for_stop();

  pid_t process_, thread_;
  bool attached_ = false;
  int signal_ = 0;  // that came for it, and waits until it is let go
};

}  // namespace weir::twin
