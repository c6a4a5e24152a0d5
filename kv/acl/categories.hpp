// The categories of commands, as sets of bits with one bit per command (Command::id).
#pragma once

#include <bitset>
#include <span>
#include <string_view>

#include "kv/command/command.hpp"

namespace weir::kv::acl {

inline constexpr std::size_t most_commands = 1024;
using CommandBits = std::bitset<most_commands>;

struct Category {
  std::string_view name;  // without @
  CommandBits members;
  CommandBits covers;  // what +@name allows: its members, and all subcommands of members
};

// In Redis's order.
std::span<const Category> all_categories();
const Category* find_category(std::string_view name);  // in any case; null: there is none

// Every command and every subcommand.
const CommandBits& every_command();
// The command and its subcommands.
CommandBits bits_of(const Command& command);

}  // namespace weir::kv::acl
