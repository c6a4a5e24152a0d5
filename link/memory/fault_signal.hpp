// The signals that a page raises which cannot be touched, SIGBUS and SIGSEGV, given to whoever can mend that.
//
// There is one handler for both. It asks the menders of that signal with the address that was touched; what
// none of them mends goes to the handler that was there before, or to the default.
//
// A program that sets its own handler later, or blocks the signal in a thread, goes without:
// faults_are_caught() says so.
#pragma once

#include <csignal>
#include <cstdint>

namespace weir::link {

// Called in the handler, so async-signal-safe. True: the page can be touched now. It may also leave by
// siglongjmp; the handler's signal mask is this thread's then, and `mask` what it was before.
using FaultMender = bool (*)(std::uintptr_t at, const sigset_t& mask);

// From now on, for the life of the process. False: this signal has four others already, and is not mended by
// this one. Each counts once.
[[nodiscard]] bool mend_faults(int signal, FaultMender mender);

// Whether such faults of this thread would come to the menders now. Three system calls.
bool faults_are_caught();
// The same, as it was in this thread at most a millisecond before. `now_ns` is of any clock that only goes
// forward.
bool faults_are_caught(std::uint64_t now_ns);

}  // namespace weir::link
