// The secret shared by a user's processes on several hosts, in a file on each host (WEIR_SOCKETS_SECRET).
#pragma once

#include <expected>
#include <string>

#include "hash/siphash.hpp"

namespace weir::sockets {

// Reads a file that belongs to this user or root, that nobody else can read, and that has at least 16 bytes.
// The error says what is wrong with it.
std::expected<hash::SipKey, std::string> read_secret(const std::string& path);

}  // namespace weir::sockets
