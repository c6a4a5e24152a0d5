#include "cli/client/endpoint.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "transport/host_port.hpp"

namespace weir::client {
namespace {

struct Scheme {
  std::string_view name;
  Transport transport;
};
constexpr std::array<Scheme, 7> schemes{{{"redis", Transport::tcp},
                                         {"valkey", Transport::tcp},
                                         {"weir", Transport::tcp},
                                         {"rediss", Transport::tls},
                                         {"valkeys", Transport::tls},
                                         {"weirs", Transport::tls},
                                         {"weir+rdma", Transport::rdma}}};

// The schemes of URIs, and every transport by its own name, except TCP and TLS, which URIs call redis and
// rediss.
std::optional<Transport> transport_of(std::string_view name) {
  for (const auto& scheme : schemes)
    if (scheme.name == name) return scheme.transport;
  if (name == "tcp" || name == "tls") return std::nullopt;
  return transport::kind_named(name);
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    if (error != std::errc{} || end != text.data() + i + 3) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

template <class Number>
bool whole_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

// user:password@ before the host. A single word is the password, as in redis-cli.
bool take_login(std::string_view& rest, Uri& uri) {
  const auto at = rest.rfind('@');
  if (at == std::string_view::npos) return true;
  const auto login = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const auto colon = login.find(':');
  const auto user = colon == std::string_view::npos ? std::string_view{} : login.substr(0, colon);
  const auto password = colon == std::string_view::npos ? login : login.substr(colon + 1);
  auto plain_user = percent_decoded(user);
  auto plain_password = percent_decoded(password);
  if (!plain_user || !plain_password) return false;
  uri.user = *plain_user;
  uri.password = *plain_password;
  return true;
}

bool take_host_and_port(std::string_view authority, Endpoint& endpoint) {
  std::optional<transport::HostPort> at = transport::parse_host_port(authority);
  if (!at) return false;
  if (!at->host.empty()) endpoint.host = std::move(at->host);
  if (at->port) endpoint.port = *at->port;
  return true;
}

}  // namespace

Result<Transport> transport_named(std::string_view name) {
  if (const auto kind = transport::kind_named(name)) return *kind;
  return fail(ErrorKind::usage, "no transport is called '" + std::string(name) +
                                    "'; the transports are tcp, unix, tls, rdma and rdma+tls");
}

std::string address_of(const Endpoint& endpoint) {
  if (endpoint.transport == Transport::unix_socket) return endpoint.path;
  return transport::host_port_text(endpoint.host, endpoint.port);
}

Result<Uri> parse_uri(std::string_view text, Endpoint defaults) {
  const auto bad = [&](std::string_view why) {
    return fail(ErrorKind::usage, "'" + std::string(text) + "' is not a server URI: " + std::string(why) +
                                      "; write redis://[user:password@]host[:port][/database], or the scheme "
                                      "rediss, rdma, rdma+tls or unix");
  };
  const auto separator = text.find("://");
  if (separator == std::string_view::npos) return bad("it has no scheme");
  Uri uri;
  uri.endpoint = std::move(defaults);
  const auto transport = transport_of(text.substr(0, separator));
  if (!transport) return bad("the scheme is unknown");
  uri.endpoint.transport = *transport;
  auto rest = text.substr(separator + 3);
  if (uri.endpoint.transport == Transport::unix_socket) {
    if (rest.empty()) return bad("the socket's path is missing");
    uri.endpoint.path = rest;
    return uri;
  }
  if (!take_login(rest, uri)) return bad("a %XX escape is broken");
  const auto slash = rest.find('/');
  if (!take_host_and_port(rest.substr(0, slash), uri.endpoint)) return bad("host or port is malformed");
  const auto database = slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
  if (!database.empty() && !whole_number(database, uri.database)) return bad("the database is not a number");
  return uri;
}

}  // namespace weir::client
