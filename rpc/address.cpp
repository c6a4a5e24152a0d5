#include "rpc/address.hpp"

#include <utility>

#include "transport/host_port.hpp"

namespace weir::rpc {

std::string Address::text() const {
  std::string text(name_of(scheme));
  text.append("://");
  if (scheme == Scheme::unix_socket) return text.append(path);
  text.append(transport::host_port_text(host, port));
  if (fallback) text.append("?fallback=").append(name_of(*fallback));
  return text;
}

Result<Address> parse_address(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    std::string what("'");
    what.append(text).append("' is no address: ").append(why);
    what.append("; tcp://HOST:PORT, unix:///PATH, tls://, rdma:// and rdma+tls:// are");
    return fail(Errc::bad_address, std::move(what));
  };
  const std::size_t mark = text.find("://");
  if (mark == std::string_view::npos) return bad("it has no ://");
  Address address;
  const std::string_view named = text.substr(0, mark);
  const std::optional<Scheme> scheme = transport::kind_named(named);
  if (!scheme) return bad("unknown transport '" + std::string(named) + "'");
  address.scheme = *scheme;
  std::string_view rest = text.substr(mark + 3);
  if (address.scheme == Scheme::unix_socket) {
    constexpr std::size_t longest = 107;  // sun_path
    if (rest.empty() || rest.size() > longest) return bad("a path of 1 to 107 characters is missing");
    address.path = rest;
    return address;
  }
  if (const std::size_t question = rest.find('?'); question != std::string_view::npos) {
    const std::string_view asked = rest.substr(question);
    rest = rest.substr(0, question);
    if (address.scheme == Scheme::rdma && asked == "?fallback=tcp")
      address.fallback = Scheme::tcp;
    else if (address.scheme == Scheme::rdma_tls && asked == "?fallback=tls")
      address.fallback = Scheme::tls;
    else
      return bad(std::string("'").append(asked).append(
          "' is neither ?fallback=tcp behind rdma:// nor ?fallback=tls behind rdma+tls://"));
  }
  const std::optional<transport::HostPort> at = transport::parse_host_port(rest);
  if (!at) return bad("an IPv6 host stands in brackets, and a port is a number of 0 to 65535");
  if (at->host.empty() || !at->port) return bad("HOST:PORT is missing");
  address.host = at->host;
  address.port = *at->port;
  return address;
}

}  // namespace weir::rpc
