// Lines in, replies out: from a terminal with a prompt, or from standard input as it comes.
#pragma once

#include <string>

#include "cli/shell/conversation.hpp"

namespace weir::shell {

// Until the user is done. `history_file` may be empty.
int converse_on_terminal(Conversation&, const Options&, const std::string& history_file);

// Runs the lines of standard input.
int run_lines(Conversation&, const Options&);

}  // namespace weir::shell
