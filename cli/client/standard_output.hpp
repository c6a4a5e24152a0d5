// Checks whether printed output was written: at the end of a program, and regularly if it has no end.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <system_error>

namespace weir::client {

// Returns `status`; if standard output failed, complains as `who` and returns `not_written`. A status that
// reports another failure takes precedence.
inline int output_arrived(const std::string& who, int status, int not_written = 1) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (flushed || status != 0) return status;
  const std::string why = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  std::fprintf(stderr, "%s: cannot write to standard output%s\n", who.c_str(), why.c_str());
  return not_written;
}

// Flushes output. Throws std::system_error if standard output fails: a program that prints for ever would
// otherwise print to nobody.
inline void flush_output() {
  if (std::fflush(stdout) != 0)
    throw std::system_error(errno, std::generic_category(), "cannot write to standard output");
  if (std::ferror(stdout) != 0)
    throw std::system_error(EIO, std::generic_category(), "cannot write to standard output");
}

}  // namespace weir::client
