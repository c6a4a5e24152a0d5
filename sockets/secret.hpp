// The secret that a user's processes on several hosts have in a file each (WEIR_SOCKETS_SECRET).
#pragma once

#include <expected>
#include <string>

#include "hash/siphash.hpp"

namespace weir::sockets {

// A file of this user's, or root's, that nobody else can read, of at least 16 bytes. Or what is wrong with
// it.
std::expected<hash::SipKey, std::string> read_secret(const std::string& path);

}  // namespace weir::sockets
