// HELP subcommands: a heading, the lines given, and the line on HELP itself, as every Redis container command
// answers.
#pragma once

#include <initializer_list>
#include <string_view>

#include "kv/commands/command.hpp"

namespace weir::kv {

void reply_help(const Call& call, std::initializer_list<std::string_view> lines);

}  // namespace weir::kv
