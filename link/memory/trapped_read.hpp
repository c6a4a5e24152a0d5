// Reading memory of ours that may not be there, without asking first.
//
// On-demand regions name memory that the program may have unmapped or protected since. Making sure beforehand
// (fault_in) costs a walk over all of its pages, twice what the copy itself takes where pages are small. Here
// the copy just runs; a page that cannot be read raises SIGSEGV or SIGBUS, and the copy is left.
//
// Threads: any, one read at a time in each.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <type_traits>

namespace weir::link {

// Whether this thread can do so with `from` now. False: a handler or a signal mask of the program's is in the
// way, there is no room for ours, or a fault there would not say its address; fault_in() it then. The
// program's are looked at once a millisecond, in three system calls. `now_ns` is of any clock that only goes
// forward.
bool can_trap_reads(std::span<const iovec> from, std::uint64_t now_ns);

// What try_reading() is for the function `copy` of `what`.
bool try_reading(std::span<const iovec> from, void (*copy)(void* what), void* what);

// Runs `copy`, which reads `from`. False: some of it cannot be read, and `copy` was left in the middle. So it
// must hold nothing that it would have undone at its end.
template <class Copy>
bool try_reading(std::span<const iovec> from, Copy&& copy) {
  return try_reading(from, [](void* what) { (*static_cast<std::remove_reference_t<Copy>*>(what))(); }, &copy);
}

}  // namespace weir::link
