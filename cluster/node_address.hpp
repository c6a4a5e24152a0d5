// Where a node of the cluster listens, as reported by the node or its peers.
#pragma once

#include <algorithm>
#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/host_port.hpp"

namespace weir::cluster {

struct NodeAddress {
  std::string host;
  std::uint16_t port = 0;

  auto operator<=>(const NodeAddress&) const = default;
  std::string text() const { return transport::host_port_text(host, port); }
};

// Whether the text may be a host: no blanks, no control bytes, not too long for a name.
inline bool may_be_host(std::string_view host) {
  constexpr std::size_t longest = 255;
  return !host.empty() && host.size() <= longest &&
         std::ranges::all_of(host, [](char c) { return c > ' ' && c <= '~'; });
}

// A decimal number up to `most`, with nothing around it.
inline std::optional<std::uint16_t> read_number(std::string_view text, std::uint16_t most) {
  std::uint16_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || number > most) return std::nullopt;
  return number;
}

inline std::optional<std::uint16_t> port_of(std::string_view text) {
  const auto port = read_number(text, 65535);
  return port && *port > 0 ? port : std::nullopt;
}

// Parses "HOST:PORT" as nodes write it. Redis writes an IPv6 address without brackets, so the
// last colon precedes the port. Users write addresses differently (transport/host_port.hpp). An
// empty host means `same_host`.
inline std::optional<NodeAddress> read_address(std::string_view text, std::string_view same_host = {}) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  const auto port = port_of(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty()) host = same_host;
  if (!port || !may_be_host(host)) return std::nullopt;
  return NodeAddress{std::string(host), *port};
}

}  // namespace weir::cluster
