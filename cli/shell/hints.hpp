// The arguments of commands, for hints and HELP. Threading: any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::shell {

// What may follow a line: the arguments not yet typed. Empty: unknown.
std::string hint_for(std::string_view line);

// Names that begin with `start`, ignoring case; for a subcommand, both words.
std::vector<std::string> completions_of(std::string_view start);

// Text for HELP [command...].
std::string help_on(const std::vector<std::string>& words);

}  // namespace weir::shell
