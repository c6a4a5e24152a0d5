// Runs one of the small programs under the checker: what it printed, and how it ended.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/scratch_directory.hpp"

namespace weir::check_test {

struct Ended {
  int status = -1;  // its exit status; -1: a signal ended it
  std::string printed;

  bool names(const std::string& text) const { return printed.find(text) != std::string::npos; }
};

// `settings` are more variables of its environment, as a shell takes them.
inline Ended run_checked(const std::string& program, const std::string& words,
                         const std::string& settings = {}) {
  const test::ScratchDirectory runtime;
  const std::string command = "WEIR_CHECK=on WEIR_RUNTIME_DIR=" + runtime.path() + " " + settings + " " +
                              program + " " + words + " 2>&1";
  std::FILE* const out = ::popen(command.c_str(), "re");
  Ended ended;
  std::array<char, 4096> piece;
  for (std::size_t got; (got = std::fread(piece.data(), 1, piece.size(), out)) != 0;)
    ended.printed.append(piece.data(), got);
  if (const int status = ::pclose(out); WIFEXITED(status)) ended.status = WEXITSTATUS(status);
  return ended;
}

}  // namespace weir::check_test
