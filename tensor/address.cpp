#include "tensor/address.hpp"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <optional>
#include <utility>

#include "transport/host_port.hpp"

namespace weir::tensor {
namespace {

std::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(
      Errc::bad_address,
      "'" + std::string(text) + "': " + std::string(why) +
          "; write rdma://HOST:PORT, rdma://HOST:PORT?fallback=tcp, tcp://HOST:PORT or tls://HOST:PORT");
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  Address address;
  std::string_view rest = text;
  constexpr Transport known[] = {Transport::rdma, Transport::tcp, Transport::tls};
  const std::size_t scheme = std::min(rest.find("://"), rest.size());
  const auto* const named =
      std::ranges::find(known, rest.substr(0, scheme), [](Transport each) { return name_of(each); });
  if (named == std::end(known) || scheme == rest.size())
    return bad(text, "the transport must be rdma, tcp or tls");
  address.transport = *named;
  rest.remove_prefix(scheme + 3);
  if (const std::size_t mark = rest.find('?'); mark != std::string_view::npos) {
    if (rest.substr(mark) != "?fallback=tcp" || address.transport != Transport::rdma)
      return bad(text, "the only setting is fallback=tcp, for an rdma:// address");
    address.fallback_tcp = true;
    rest = rest.substr(0, mark);
  }
  const std::optional<transport::HostPort> at = transport::parse_host_port(rest);
  if (!at) return bad(text, "an IPv6 host needs brackets, and a port is a number from 0 to 65535");
  if (at->host.empty()) return bad(text, "no host");
  if (!at->port) return bad(text, "no port");
  address.host = at->host;
  address.port = *at->port;
  return address;
}

Result<std::vector<Address>> parse_addresses(std::string_view text) {
  std::vector<Address> all;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    Result<Address> each = parse_address(text.substr(0, comma));
    if (!each) return std::unexpected(each.error());
    all.push_back(std::move(*each));
    if (comma == text.size()) return all;
    text.remove_prefix(comma + 1);
  }
}

bool names_rdma(std::string_view text) { return text.find("rdma://") != std::string_view::npos; }

bool names_tls(const std::vector<Address>& all) {
  return std::ranges::find(all, Transport::tls, &Address::transport) != all.end();
}

std::string_view name_of(Transport transport) {
  constexpr std::string_view names[] = {"none", "rdma", "tcp", "tls"};
  return names[static_cast<std::size_t>(transport)];
}

std::string text_of(const Address& address, const rdma::Endpoint& at) {
  return std::string(name_of(address.transport)) + "://" + rdma::text(at) +
         (address.fallback_tcp ? "?fallback=tcp" : "");
}

asio::ip::address unmapped(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

Result<rdma::Endpoint> resolve(const Address& address) {
  std::error_code failed;
  if (const auto literal = asio::ip::make_address(address.host, failed); !failed)
    return rdma::Endpoint(literal, address.port);
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  const auto found = resolver.resolve(address.host, std::to_string(address.port), failed);
  if (failed || found.empty())
    return fail(Errc::unreachable, "the host '" + address.host + "' is not known: " + failed.message());
  return found.begin()->endpoint();
}

}  // namespace weir::tensor
