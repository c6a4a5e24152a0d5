// Where a hub is: rdma://HOST:PORT. Pure, but for resolve().
#pragma once

#include <string>
#include <string_view>

#include "rdma/cm.hpp"
#include "tensor/error.hpp"

namespace weir::tensor {

struct Address {
  std::string host;  // an IPv6 address without its brackets
  std::uint16_t port = 0;
};

Result<Address> parse_address(std::string_view text);
// May ask name servers: blocks.
Result<rdma::Endpoint> resolve(const Address& address);

}  // namespace weir::tensor
