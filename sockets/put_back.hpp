// Lets an operator return a process's connections to TCP (`weir sockets --off`).
#pragma once

#include <cstdint>
#include <expected>
#include <string>

namespace weir::sockets {

struct PutBack {
  std::string program;
  std::size_t connections = 0;  // in the table
};
// Returns all connections of that process to TCP, and keeps later ones there. Its service thread does that at
// once. The error says why it could not be done.
std::expected<PutBack, std::string> put_back(const std::string& runtime_directory, std::uint32_t pid);

}  // namespace weir::sockets
