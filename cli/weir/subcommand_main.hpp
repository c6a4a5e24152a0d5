// What main() of weir-plan, weir-sim and the other programs that `weir` becomes (other_program.hpp) does.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::command {

// Runs `subcommand`, called `name`, on the words behind the program's. `not_written`: the exit status where
// standard output does not take what it printed.
int subcommand_main(std::string_view name, int (*subcommand)(std::span<const std::string>), int not_written,
                    int count, char** values);

}  // namespace weir::command
