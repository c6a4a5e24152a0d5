// Where a hub is: rdma://HOST:PORT. A client's may end with ?fallback=tcp, which lets it use TCP where there
// is no RDMA; nothing else does. Pure, but for resolve().
#pragma once

#include <string>
#include <string_view>

#include "rdma/cm.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

struct Address {
  enum class Scheme { rdma, tcp };
  Scheme scheme = Scheme::rdma;
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 0;
  bool fallback_tcp = false;
};

Result<Address> parse_address(std::string_view text);
// May ask name servers: blocks.
Result<rdma::Endpoint> resolve(const Address& address);

}  // namespace weir::tensor
