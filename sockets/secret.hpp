// The secret shared by a user's processes on several hosts, in a file on each host (WEIR_SOCKETS_SECRET).
#pragma once

#include <expected>
#include <string>

#include "hash/siphash.hpp"

namespace weir::sockets {

// From a file as link/secret_file.hpp wants it. The error says what is wrong with it.
std::expected<hash::SipKey, std::string> read_secret(const std::string& path);

}  // namespace weir::sockets
