// Copies to and from program memory that may no longer be mapped.
//
// A program may unmap, protect or truncate memory after it has registered it. A hardware NIC has pinned those
// pages; here the copy raises SIGSEGV or SIGBUS, and the work request then completes with an error. The copy
// itself has no checks, so it costs nothing extra while the memory is mapped; the signal's handler
// (link/memory/fault_signal.hpp) calls leave_copy(), which abandons the copy in the middle.
//
// Threads: any. A copy in a signal handler may interrupt another copy of the same thread.
#pragma once

#include <sys/uio.h>

#include <csetjmp>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::rnic {

// Where a copy was left.
enum class Trapped : std::uint8_t {
  no,      // it is whole
  pieces,  // at the pieces that a work request names
  target   // at the memory on the other side
};

// What leads back into run_trapped(): there are two ways of saving it.
#if defined(__clang__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
using WayBack = sigjmp_buf;
#else
using WayBack = void* [5];
#endif

// A copy under way, on the stack of its thread.
struct CopyTrap {
  std::span<const iovec> pieces;
  std::span<const std::byte> target;
  CopyTrap* outer;  // which it interrupted
  WayBack back;
  // By leave_copy().
  Trapped left_at;
  sigset_t mask;  // the thread's before the signal
};

// Of this thread; nullptr: none. Its only other reader is a handler in the same thread. In every thread from
// its start on: elsewhere the first look of a handler, at a fault in malloc, say, would allocate it.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local CopyTrap* copy_trap;

// Call in a handler of SIGSEGV or SIGBUS with the fault's address; `mask` is the thread's signal mask before
// it. Does not return if a copy of this thread must be abandoned. Returns false if the fault is not ours.
bool leave_copy(std::uintptr_t at, const sigset_t& mask);

// Runs copy(what) in that trap, whose pieces and target are already set.
Trapped run_trapped(CopyTrap& trap, void (*copy)(const void* what), const void* what);

// Runs `copy`, which touches `pieces` and `target`, and only they may be missing. It may be left in the
// middle, so it must hold nothing that it would have undone at its end, and what it wrote is half written
// then.
template <class Copy>
Trapped try_copy(std::span<const iovec> pieces, std::span<const std::byte> target, const Copy& copy) {
  CopyTrap trap;  // NOLINT(cppcoreguidelines-pro-type-member-init): see there
  trap.pieces = pieces;
  trap.target = target;
  return run_trapped(trap, [](const void* what) { (*static_cast<const Copy*>(what))(); }, &copy);
}

}  // namespace weir::rnic
