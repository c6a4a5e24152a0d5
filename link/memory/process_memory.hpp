// Another process's private memory, through process_vm_readv/writev: no cooperation of its threads is needed.
//
// The kernel asks for the permission to trace that process: same user, and no Yama restriction beyond what
// allow_tracing() lifts. Copies run in address order, so the last byte of a transfer is written last.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>

namespace weir::link {

// Lets processes of the same user read and write ours where Yama would refuse it (PR_SET_PTRACER).
void allow_tracing();

// True: everything was copied. False: errno says why (ESRCH gone, EPERM refused, EFAULT not mapped).
bool write_process_memory(pid_t, std::span<const iovec> local, std::span<const iovec> remote);
bool read_process_memory(pid_t, std::span<const iovec> local, std::span<const iovec> remote);

}  // namespace weir::link
