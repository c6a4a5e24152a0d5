// The main() of weir-plan, weir-sim and the other programs that `weir` becomes (other_program.hpp).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::command {

// Runs `subcommand`, called `name`, on the words after the program's name. `not_written`: the exit status if
// standard output does not take the text.
int subcommand_main(std::string_view name, int (*subcommand)(std::span<const std::string>), int not_written,
                    int count, char** values);

}  // namespace weir::command
