// "HOST:PORT", "[IPV6]:PORT": how addresses name a host and a port, and how they are shown. Pure.
//
// One reader for every address that a user writes: URLs of servers (rpc/, tensor/, weir-cli) and options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::transport {

struct HostPort {
  std::string host;                   // without brackets; empty where nothing stands before the colon
  std::optional<std::uint16_t> port;  // nothing: there is no colon, or nothing behind it
};

// Nothing: brackets that do not match or hold nothing, an IPv6 address without them, or a port that is not a
// number from 0 to 65535.
std::optional<HostPort> parse_host_port(std::string_view text);

// With brackets around a host that has colons.
std::string host_port_text(std::string_view host, std::uint16_t port);

}  // namespace weir::transport
