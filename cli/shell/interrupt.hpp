// Ctrl-C as the end of a wait instead of the end of the program, as long as one of these lives.
//
// Threading: one at a time, in the thread that waits. A signal ends a wait in the kernel; one that comes just
// before it does not, so a wait that must be left looks at came() every few tens of milliseconds too.
#pragma once

#include <csignal>

namespace weir::shell {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Whether there was a Ctrl-C since the last one of these began. False if there was none of these yet.
  static bool came();

 private:
  struct sigaction before_{};
};

}  // namespace weir::shell
