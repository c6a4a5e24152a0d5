// Another process's private memory, through process_vm_readv/writev: no cooperation of its threads is needed.
//
// The kernel asks for the permission to trace that process: same user, and no Yama restriction beyond what
// allow_tracing() lifts. A container's seccomp profile may refuse the calls altogether, and a pid may mean
// another process in another pid namespace: reached() finds out. Copies run in address order, so the last
// byte of a transfer is written last.
//
// The calls take a number, and a number passes to another process: after an exec to the next program, after
// the end to whichever process the kernel gives it. No check beforehand excludes that, because the caller may
// be stopped between the check and the call. So each call begins with the target's probe, at a random
// address. The kernel looks the process up once for each call and goes through the pieces in order: in any
// other process nothing is mapped there, and the call fails before the first byte of the transfer
// (docs/decisions/0038).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>

namespace weir::link {

// Lies in a process's private memory; others find out with it whether they can reach that memory, and each of
// their calls passes it.
struct MemoryProbe {
  std::uint64_t token = 0;   // random, and known to every process that may read it
  std::uint64_t answer = 0;  // whatever others wrote
};

// The page of our own probe. A forked child does not have it: its number may be ours one day.
class ProbePage {
 public:
  // `place`, random, says where to put it. Without memory: address() is 0, and errno says why.
  ProbePage(std::uint64_t place, std::uint64_t token);
  ~ProbePage();
  ProbePage(const ProbePage&) = delete;
  ProbePage& operator=(const ProbePage&) = delete;

  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(probe_); }
  const MemoryProbe* probe() const { return probe_; }

 private:
  MemoryProbe* probe_ = nullptr;
};

// Lets processes of the same user read and write ours where Yama would refuse it (PR_SET_PTRACER).
void allow_tracing();

// Thread-safe. Of write and read: true, everything was copied. False: errno says why (ESRCH gone, EPERM
// refused, EFAULT not mapped, or the process of that number is not the one meant).
class ProcessMemory {
 public:
  // Of the process with that pid whose probe lies at that address with that token.
  ProcessMemory(pid_t pid, std::uint64_t probe, std::uint64_t token)
      : pid_(pid), probe_(probe), token_(token) {}

  bool reached() const;  // we may read and write it
  bool write(std::span<const iovec> local, std::span<const iovec> remote) const;
  bool read(std::span<const iovec> local, std::span<const iovec> remote) const;

 private:
  pid_t pid_;  // 0: not visible in our pid namespace
  std::uint64_t probe_, token_;
};

// The same within this process, where the kernel's report of missing memory is wanted and no signal.
bool write_own_memory(std::span<const iovec> local, std::span<const iovec> remote);
bool read_own_memory(std::span<const iovec> local, std::span<const iovec> remote);

}  // namespace weir::link
