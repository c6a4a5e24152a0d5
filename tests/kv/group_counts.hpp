// How much of a stream a group has read: Redis 7.0 counts deleted entries, later versions and this server do
// not.
#pragma once

#include <string>
#include <string_view>

namespace weir::kv::testing {

// XINFO's reply without these two counts.
inline std::string without_group_counts(std::string reply) {
  for (const std::string_view name : {"$12\r\nentries-read\r\n", "$3\r\nlag\r\n"}) {
    for (std::size_t at = 0; (at = reply.find(name, at)) != std::string::npos;) {
      at += name.size();
      reply.erase(at, reply.find("\r\n", at) - at);
    }
  }
  return reply;
}

}  // namespace weir::kv::testing
