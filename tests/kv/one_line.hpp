// Replies as tests write them down.
#pragma once

#include <string>

namespace weir::kv::testing {

// A reply's lines, separated by blanks, without the lengths of texts: "*2 :1 b $-1".
inline std::string one_line(const std::string& reply) {
  std::string line;
  for (std::size_t at = 0; at < reply.size();) {
    const std::size_t end = reply.find("\r\n", at);
    if (reply[at] != '$' || reply[at + 1] == '-')
      line.append(line.empty() ? "" : " ").append(reply, at, end - at);
    at = end + 2;
  }
  return line;
}

}  // namespace weir::kv::testing
