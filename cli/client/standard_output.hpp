// Whether what a program printed has arrived: at its end, and on the way of one that has none.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

namespace weir::client {

// `status`, or `not_written` after a complaint of `who` where standard output did not take everything. A
// status that tells of another failure stands.
inline int output_arrived(const std::string& who, int status, int not_written = 1) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (flushed || status != 0) return status;
  const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  std::fprintf(stderr, "%s: cannot write to standard output%s\n", who.c_str(), why.c_str());
  return not_written;
}

// Hands over what was printed. Throws std::system_error where standard output does not take it: who prints
// for ever would otherwise go on for nobody.
inline void flush_output() {
  if (std::fflush(stdout) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
  if (std::ferror(stdout) != 0)
    throw std::system_error(EIO, std::generic_category(), "cannot write to standard output");
}

}  // namespace weir::client
