// Subcommands that are separate programs, as in git: `weir plan` becomes weir-plan, which lies beside `weir`.
// So `weir` can be built and installed without the planner and rpc.
#pragma once

#include <span>
#include <string>

namespace weir::command {

// Returns only if the program cannot be run, after a message on standard error. Returns the exit status: 127
// if the program is not installed and 126 otherwise, as a shell does.
int become_other_program(const std::string& subcommand, std::span<const std::string> arguments);

}  // namespace weir::command
