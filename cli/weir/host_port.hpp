// Parses "host:port", "[::1]:port" and ":port", the forms that options take.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace weir::command {

struct HostPort {
  std::string host;  // without brackets; empty if nothing stands before the colon
  std::uint16_t port = 0;
};

// The error is printed after the name of the option.
std::expected<HostPort, std::string> read_host_port(std::string_view text);

}  // namespace weir::command
