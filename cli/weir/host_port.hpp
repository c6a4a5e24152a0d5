// "host:port", "[::1]:port" and ":port", as options take them.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace weir::command {

struct HostPort {
  std::string host;  // without brackets; empty where none stands before the colon
  std::uint16_t port = 0;
};

// The error is fit to print behind the name of the option.
std::expected<HostPort, std::string> read_host_port(std::string_view text);

}  // namespace weir::command
