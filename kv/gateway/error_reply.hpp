// An error reply for a client, always on one line whatever text it is made from.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

#include "kv/command/command.hpp"

namespace weir::kv::cluster {

inline std::string error_reply(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return '-' + text + "\r\n";
}

// The command's name as error messages spell it: "SCRIPT LOAD".
inline std::string in_capitals(const Command& command) {
  std::string name(command.container.empty() ? command.name : command.container);
  if (!command.container.empty()) name.append(1, ' ').append(command.name);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace weir::kv::cluster
