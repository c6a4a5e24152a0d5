// The commands of the server as COMMAND DOCS describes them. README.md has the table's notation.
//
// Threading: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::command_syntax {

enum class ArgumentType : std::uint8_t {
  string,
  integer,
  real,
  unix_time,
  key,
  pattern,
  pure_token,
  one_of,
  block
};
// As COMMAND DOCS calls it: "pure-token".
std::string_view name_of(ArgumentType type);

struct Argument {
  std::string_view name;
  ArgumentType type = ArgumentType::string;
  bool has_token = false;
  std::string_view token;             // may be empty
  std::string_view since;             // empty: as long as the command
  std::string_view deprecated_since;  // empty: not
  int key_specification = -1;         // -1: none
  bool optional = false;
  bool multiple = false;
  bool multiple_token = false;
  std::vector<Argument> arguments;  // of a one_of or a block
};

struct CommandSyntax {
  std::string_view name;        // lower case; of a subcommand "config|get"
  std::string_view since;       // a version of Redis
  std::string_view complexity;  // "O(N)"; empty: not known
  std::string_view arguments;   // in the notation
};

// In the order of their names.
std::span<const CommandSyntax> all_commands();
// nullptr: there is none of that name (lower case).
const CommandSyntax* find_command(std::string_view name);
// The views in it live as long as the program.
std::vector<Argument> arguments_of(const CommandSyntax& command);

}  // namespace weir::command_syntax
