// Text for people, as wide as the terminal that shows it.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace weir::screen {

// The columns of what `file` shows: COLUMNS of the environment, else the terminal's; 0: it is no terminal.
std::size_t columns_of(std::FILE* file);

// Prints help: wrapped at the terminal's width.
void print_wrapped(std::FILE* file, std::string_view text);

// A message of one line for standard error, without its end of line. Only a terminal gets it in several
// lines: in a log a message is one.
std::string message(std::string_view text);

}  // namespace weir::screen
