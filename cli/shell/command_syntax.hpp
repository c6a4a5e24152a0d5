// The arguments of the commands people type, for hints and HELP.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::shell {

struct CommandSyntax {
  std::string_view name;       // "CONFIG GET"
  std::string_view arguments;  // "pattern [pattern ...]"
};

// The command that these words begin with, the longest match; null if none.
const CommandSyntax* syntax_of(const std::vector<std::string>& words);

// What may be typed behind a line: the arguments not yet given. Empty: nothing is known.
std::string hint_for(std::string_view line);

// Names that begin with `start`, ignoring case; of a command with a subcommand, both words.
std::vector<std::string> completions_of(std::string_view start);

// Text for HELP [command...].
std::string help_on(const std::vector<std::string>& words);

}  // namespace weir::shell
