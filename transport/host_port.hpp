// "HOST:PORT", "[IPV6]:PORT": how addresses name a host and a port, and how they are shown. Pure.
//
// The one parser for every address that a user writes: server URLs (rpc/, tensor/, weir-cli) and options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::transport {

struct HostPort {
  std::string host;                   // without brackets; empty if nothing precedes the colon
  std::optional<std::uint16_t> port;  // nullopt: there is no colon, or nothing follows it
};

// Returns nullopt for brackets that do not match or hold nothing, an IPv6 address without brackets, or a port
// that is not a number from 0 to 65535.
std::optional<HostPort> parse_host_port(std::string_view text);

// Puts brackets around a host that contains colons.
std::string host_port_text(std::string_view host, std::uint16_t port);

}  // namespace weir::transport
