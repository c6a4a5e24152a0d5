// The arguments of frequently typed commands, for hints and HELP.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::shell {

struct CommandSyntax {
  std::string_view name;       // "CONFIG GET"
  std::string_view arguments;  // "pattern [pattern ...]"
};

// The command with which these words begin, by longest match; null: none.
const CommandSyntax* syntax_of(const std::vector<std::string>& words);

// What may follow a line: the arguments not yet typed. Empty: unknown.
std::string hint_for(std::string_view line);

// Names that begin with `start`, ignoring case; for a subcommand, both words.
std::vector<std::string> completions_of(std::string_view start);

// Text for HELP [command...].
std::string help_on(const std::vector<std::string>& words);

}  // namespace weir::shell
