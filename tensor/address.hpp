// Where a hub is: rdma://HOST:PORT, rdma://HOST:PORT?fallback=tcp or tcp://HOST:PORT. Pure, but for
// resolve().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rdma/verbs/cm.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

enum class Transport : std::uint8_t { none, rdma, tcp };
std::string_view name_of(Transport);

struct Address {
  Transport transport = Transport::rdma;
  bool fallback_tcp = false;  // TCP where RDMA does not answer, and only then; a hub listens on both
  std::string host;           // an IPv6 address without its brackets
  std::uint16_t port = 0;
};

Result<Address> parse_address(std::string_view text);
// Several, with commas between them: a hub listens on all. At least one.
Result<std::vector<Address>> parse_addresses(std::string_view text);
// Whether an address needs, or may use, an RDMA library.
bool names_rdma(std::string_view text);
// As parse_address() takes it, with another port.
std::string text_of(const Address& address, const rdma::Endpoint& at);
// May ask name servers: blocks.
Result<rdma::Endpoint> resolve(const Address& address);

}  // namespace weir::tensor
