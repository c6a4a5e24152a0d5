// HELP subcommands: a heading, the given lines, and a line on HELP itself, as in all of
// Redis's container commands.
#pragma once

#include <initializer_list>
#include <string_view>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

void reply_help(const Call& call, std::initializer_list<std::string_view> lines);

}  // namespace weir::kv
