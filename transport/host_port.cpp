#include "transport/host_port.hpp"

#include <charconv>

namespace weir::transport {

std::optional<HostPort> parse_host_port(std::string_view text) {
  HostPort read;
  std::string_view rest;  // from the colon on
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos || close == 1) return std::nullopt;
    read.host = text.substr(1, close - 1);
    rest = text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':')) return std::nullopt;
  } else {
    const std::size_t colon = text.find(':');
    if (colon != text.rfind(':')) return std::nullopt;
    read.host = text.substr(0, colon);
    if (colon != std::string_view::npos) rest = text.substr(colon);
  }
  if (rest.size() <= 1) return read;
  rest.remove_prefix(1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
  if (error != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  read.port = port;
  return read;
}

std::string host_port_text(std::string_view host, std::uint16_t port) {
  const bool brackets = host.find(':') != std::string_view::npos;
  std::string text(brackets ? "[" : "");
  return text.append(host).append(brackets ? "]:" : ":").append(std::to_string(port));
}

}  // namespace weir::transport
