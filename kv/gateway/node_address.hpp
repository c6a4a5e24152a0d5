// Where a node of the cluster listens, as it and its peers say.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kv/number.hpp"
#include "transport/host_port.hpp"

namespace weir::kv::cluster {

struct NodeAddress {
  std::string host;
  std::uint16_t port = 0;

  auto operator<=>(const NodeAddress&) const = default;
  std::string text() const { return transport::host_port_text(host, port); }
};

// What may stand for a host: no blanks, no control bytes, not too long for a name.
inline bool may_be_host(std::string_view host) {
  constexpr std::size_t longest = 255;
  return !host.empty() && host.size() <= longest &&
         std::ranges::all_of(host, [](char c) { return c > ' ' && c <= '~'; });
}

inline std::optional<std::uint16_t> port_of(std::string_view text) {
  const auto port = parse_int(text);
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(*port);
}

// "HOST:PORT" as nodes say it: Redis writes an IPv6 address without brackets, so the last colon is the
// port's, which is not how users write addresses (transport/host_port.hpp). An empty host stands for
// `same_host`.
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

}  // namespace weir::kv::cluster
