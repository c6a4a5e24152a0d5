// Where the primary is that this server follows: the value of the setting replicaof.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::kv::repl {

struct PrimaryAddress {
  std::string host;
  std::uint16_t port = 0;
  bool operator==(const PrimaryAddress&) const = default;

  // One word of a configuration file, without quotes.
  static bool may_be_host(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) {
      return c > ' ' && c <= '~' && c != '"' && c != '\'' && c != '\\' && c != '#';
    });
  }
};

}  // namespace weir::kv::repl
