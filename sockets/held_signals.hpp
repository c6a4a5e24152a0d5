// The program's signal handlers wait while their thread is inside one of our critical sections. A handler
// that uses the same connection would otherwise wait for itself, and one that leaves by longjmp() would leave
// the section shut for ever.
//
// A counter a thread says how deep it is inside. At 0 a handler runs at once, and nobody pays. Inside, the
// signal is sent to the thread once more and all signals are blocked; the thread unblocks them when it comes
// out, and the kernel delivers them as if they had come then. Signals of the thread's own faults (SIGSEGV and
// the like) never wait.
//
// Threading: any thread, and handlers in it.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace weir::sockets {

struct HeldSignals {
  unsigned depth = 0;
  bool held = false;
  std::uint64_t mask_before = 0;  // as the kernel has it
};
// The library is there from the start of the program, so its thread-local memory can be reached without a
// call.
extern constinit thread_local HeldSignals held_signals __attribute__((tls_model("initial-exec")));
void deliver_held_signals();

inline void enter_section() {
  ++held_signals.depth;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
inline void leave_section() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (--held_signals.depth == 0 && held_signals.held) deliver_held_signals();
}

class Section {
 public:
  Section() { enter_section(); }
  ~Section() { leave_section(); }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
};

// Held by a thread whose handlers wait.
class SectionMutex {
 public:
  void lock() {
    enter_section();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    leave_section();
  }

 private:
  std::mutex mutex_;
};

// sigaction() of a program: its handler is kept here, and the kernel gets ours. `call`: the C library's.
using SetAction = int(int, const struct sigaction*, struct sigaction*);
int set_action(SetAction* call, int signal, const struct sigaction* action, struct sigaction* before);

}  // namespace weir::sockets
