// An error as it goes to a client, whatever it was put together from: one line.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>

#include "kv/commands/command.hpp"

namespace weir::kv::cluster {

inline std::string error_reply(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return '-' + text + "\r\n";
}

// As errors name a command: "SCRIPT LOAD".
inline std::string in_capitals(const Command& command) {
  std::string name(command.container.empty() ? command.name : command.container);
  if (!command.container.empty()) name.append(1, ' ').append(command.name);
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace weir::kv::cluster
