// Signals in virtual time. A thread that waits holds them back, so that no handler runs without the baton;
// when it is granted they come.
//
// Threading: from any thread.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>

namespace weir::twin {

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }

// While it lives, or until release(), no signal but those of faults comes to this thread.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  // What was held comes now. True: a handler of the program ran.
  bool release();

 private:
  std::uint64_t before_ = 0;
  bool held_ = true;
};

// Threads of that process may have to take a signal: all that wait look. pid as for kill(). signal_calls.cpp
void wake_for_signal(pid_t pid, int signal);

// The program has set what a signal does.
void handler_set(int signal, const struct sigaction& action);

}  // namespace weir::twin
