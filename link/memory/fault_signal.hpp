// Hands SIGBUS and SIGSEGV, which a page raises that cannot be touched, to functions that can mend the fault.
//
// There is one handler for both. It asks the signal's menders with the address that was touched. A fault that
// none of them mends goes to the previous handler, or to the default.
//
// A program that sets its own handler later, or blocks the signal in a thread, loses this protection:
// faults_are_caught() reports it.
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
