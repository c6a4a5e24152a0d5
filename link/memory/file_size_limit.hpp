// Whether this process may make a file that long. ftruncate beyond the limit of file sizes (ulimit -f) says
// EFBIG only where SIGXFSZ is ignored; elsewhere that signal ends the program, which only opened a device.
#pragma once

#include <sys/resource.h>

#include <cstddef>

namespace weir::link {

inline bool file_may_have(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur;
}

}  // namespace weir::link
