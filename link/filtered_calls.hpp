// Whether this process would survive a system call: a seccomp filter, of the program or of what started it
// (systemd's SystemCallFilter), may kill a process that makes one it does not expect. A filter cannot be read
// and asking it is fatal, so a child asks, which has the same filter. Only where there is one.
//
// Any thread. Signals and children of the program are not disturbed: the child's end raises no signal, and no
// wait() of the program returns it.
#pragma once

#include <span>

namespace weir::link {

// Numbers as SYS_read. Each is tried with arguments for which it does nothing. True where that cannot be
// found out.
bool survives(std::span<const long> calls);

// What /proc/self/status says: "Seccomp:" 1 or 2.
bool is_filtered();

}  // namespace weir::link
