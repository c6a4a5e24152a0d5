// Runs a program on the weak NIC, again and again: how each run ended, and what it printed.
//
// The program has a process group of its own, which is ended when a run takes too long. Its standard input is
// empty, and its output goes into a file without a name, of which the last lines are kept.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/weir/launch/launch.hpp"
#include "rnic/weak/weaknesses.hpp"

namespace weir::command {

struct RunEnded {
  int status = -1;    // the exit status; -1: it has none
  int signal = 0;     // that ended it
  bool hung = false;  // it was ended, because it took too long
  std::vector<std::string> last_lines;
  std::chrono::steady_clock::duration took{};

  bool passed() const { return status == 0; }
};
// "exit status 1", "SIGSEGV", "no end after 60 s".
std::string text_of(const RunEnded&, std::chrono::seconds limit);

// nullopt as the plan: on a NIC that is not weak.
RunEnded run_once(const Launch&, const std::optional<rnic::weak::Plan>&, std::chrono::seconds limit);

}  // namespace weir::command
