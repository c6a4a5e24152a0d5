// Where a hub is: rdma://HOST:PORT, rdma://HOST:PORT?fallback=tcp, tcp://HOST:PORT or tls://HOST:PORT, which
// is TCP inside TLS. Pure, except resolve().
#pragma once

#include <asio/ip/address.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/verbs/cm.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

enum class Transport : std::uint8_t { none, rdma, tcp, tls };
std::string_view name_of(Transport);

struct Address {
  Transport transport = Transport::rdma;
  bool fallback_tcp = false;  // peer: try TCP only if RDMA fails; hub: listen on both
  std::string host;           // an IPv6 address without its brackets
  std::uint16_t port = 0;
};

Result<Address> parse_address(std::string_view text);
// One or more addresses, separated by commas; a hub listens on all of them.
Result<std::vector<Address>> parse_addresses(std::string_view text);
// Whether an address requires, or may use, an RDMA library.
bool names_rdma(std::string_view text);
bool names_tls(const std::vector<Address>& all);
// Formats an address as parse_address() reads it, with the host and port of `at`.
std::string text_of(const Address& address, const rdma::Endpoint& at);
// Unwraps an IPv4 address that is mapped into an IPv6 one.
asio::ip::address unmapped(const asio::ip::address& address);
// Blocks: it may query name servers.
Result<rdma::Endpoint> resolve(const Address& address);

}  // namespace weir::tensor
