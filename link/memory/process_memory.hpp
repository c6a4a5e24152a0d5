// Another process's private memory, through process_vm_readv/writev: no cooperation of its threads is needed.
//
// The kernel asks for the permission to trace that process: same user, and no Yama restriction beyond what
// allow_tracing() lifts. A container's seccomp profile may refuse the calls altogether, and a pid may mean
// another process in another pid namespace: reaches() finds out. Copies run in address order, so the last
// byte of a transfer is written last.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace weir::link {

// Lies in a process's private memory; others find out with it whether they can reach that memory.
struct MemoryProbe {
  std::uint64_t token = 0;  // random, and known to every process that may read it
  std::uint64_t answer = 0;
};

// Lets processes of the same user read and write ours where Yama would refuse it (PR_SET_PTRACER).
void allow_tracing();

// That pid names the process whose probe lies there with that token, and we may read and write its memory.
bool reaches(pid_t, std::uint64_t probe, std::uint64_t token);

// True: everything was copied. False: errno says why (ESRCH gone, EPERM refused, EFAULT not mapped).
bool write_process_memory(pid_t, std::span<const iovec> local, std::span<const iovec> remote);
bool read_process_memory(pid_t, std::span<const iovec> local, std::span<const iovec> remote);

}  // namespace weir::link
