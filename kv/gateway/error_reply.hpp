// An error as it goes to a client, whatever it was put together from: one line.
#pragma once

#include <algorithm>
#include <string>

namespace weir::kv::cluster {

inline std::string error_reply(std::string text) {
  std::ranges::replace_if(text, [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return '-' + text + "\r\n";
}

}  // namespace weir::kv::cluster
