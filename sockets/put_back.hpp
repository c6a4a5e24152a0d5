// An operator's word that the connections of a process go back to TCP (`weir sockets --off`).
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace weir::sockets {

struct PutBack {
  std::string program;
  std::size_t connections = 0;  // in the table
};
// All connections of that process, those that it makes later included; its service thread does it at once. Or
// why not.
std::expected<PutBack, std::string> put_back(const std::string& runtime_directory, std::uint32_t pid);

}  // namespace weir::sockets
