// A command's arguments as people read them.
#pragma once

#include <string>

#include "command_syntax/command_syntax.hpp"

namespace weir::command_syntax {

// "key value [NX|XX] [EX seconds|PX milliseconds]"
std::string usage_of(const CommandSyntax& command);

}  // namespace weir::command_syntax
