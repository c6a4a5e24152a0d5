// While one of these exists, Ctrl-C ends a wait instead of the program.
//
// Threading: one at a time, in the waiting thread. A signal ends a wait in the kernel. A signal just before
// the wait does not, so an interruptible wait must also check came() every few tens of milliseconds.
#pragma once

#include <csignal>

namespace weir::shell {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Whether Ctrl-C was pressed since the last Interrupt was made. False if there was none yet.
  static bool came();

 private:
  struct sigaction before_{};
};

}  // namespace weir::shell
