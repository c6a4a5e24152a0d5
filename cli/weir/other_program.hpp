// Subcommands that are programs of their own, as git has them: `weir plan` becomes weir-plan, which lies
// beside `weir`. So whoever builds or installs `weir` alone needs neither the planner nor rpc.
#pragma once

#include <span>
#include <string>

namespace weir::command {

// Does not return unless the program cannot be run, which it has said then: the status to exit with, 127
// where it is not installed and 126 otherwise, as a shell does.
int become_other_program(const std::string& subcommand, std::span<const std::string> arguments);

}  // namespace weir::command
