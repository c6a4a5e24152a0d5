#include "link/random_number.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <random>

namespace weir::link {

std::uint64_t random_number() {
  std::uint64_t drawn;
  // So few bytes come at once, or not at all, and a signal does not cut them. The C library's function of
  // that name is a cancellation point, and callers of the connection manager are none.
  if (::syscall(SYS_getrandom, &drawn, sizeof drawn, 0) == sizeof drawn) return drawn;
  // A filter of system calls refuses it; this one asks the processor first.
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace weir::link
