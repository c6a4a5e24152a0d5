// A command in its wire form: an array of bulk strings.
#pragma once

#include <span>
#include <string>

namespace weir::client {

inline void append_request(std::string& out, std::span<const std::string> arguments) {
  out += '*';
  out += std::to_string(arguments.size());
  out += "\r\n";
  for (const auto& argument : arguments) {
    out += '$';
    out += std::to_string(argument.size());
    out += "\r\n";
    out += argument;
    out += "\r\n";
  }
}

}  // namespace weir::client
