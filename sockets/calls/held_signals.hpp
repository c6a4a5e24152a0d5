// Holds back the program's signal handlers while their thread is inside one of our critical sections. A
// handler that used the same connection would wait for itself; one that left by longjmp() would leave
// the section shut for ever.
//
// A per-thread counter holds the nesting depth. At 0 a handler runs at once, at no cost. Inside a section
// the signal is sent to the thread again and all signals are blocked. On leaving, the thread unblocks
// them, and the kernel delivers them as if they had just come. Signals of the thread's own faults
// (SIGSEGV and the like) never wait.
//
// Threading: any thread, and its signal handlers.
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
// The library is loaded when the program starts, so its thread-local memory can be
// reached without a call.
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

// While a thread holds it, that thread's signal handlers wait.
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

// The program's sigaction(): we keep its handler and give the kernel ours. `call`: the C library's function.
using SetAction = int(int, const struct sigaction*, struct sigaction*);
int set_action(SetAction* call, int signal, const struct sigaction* action, struct sigaction* before);

}  // namespace weir::sockets
