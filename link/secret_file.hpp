// A file with a secret that a user's processes on several hosts share (WEIR_SOCKETS_SECRET, WEIR_WIRE_KEY).
// Any thread.
#pragma once

#include <expected>
#include <string>

namespace weir::link {

// The contents of a file that belongs to this user or root, that nobody else can read, and that has 16 to
// 4096 bytes. The error says what is wrong with it, and begins with its name.
std::expected<std::string, std::string> read_secret_file(const std::string& path);

}  // namespace weir::link
