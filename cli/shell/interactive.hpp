// Reads lines and prints replies: at a terminal with a prompt, or from standard input.
#pragma once

#include <string>

#include "cli/shell/conversation.hpp"

namespace weir::shell {

// Returns when the user is done. `history_file` may be empty.
int converse_on_terminal(Conversation&, const Options&, const std::string& history_file);

// Runs each line of standard input.
int run_lines(Conversation&, const Options&);

}  // namespace weir::shell
