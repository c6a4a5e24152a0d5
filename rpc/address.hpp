// Addresses as users write them: "tcp://HOST:PORT", "tls://...", "rdma://...", "rdma+tls://...",
// "unix:///PATH". An IPv6 host stands in brackets. Pure.
#pragma once

#include <string>
#include <string_view>

#include "rpc/error.hpp"

namespace weir::rpc {

enum class Scheme { tcp, tls, rdma, rdma_tls, unix_socket };
std::string_view name_of(Scheme);

struct Address {
  Scheme scheme = Scheme::tcp;
  std::string host;
  std::uint16_t port = 0;
  std::string path;  // of a unix socket

  std::string text() const;
  bool secure() const { return scheme == Scheme::tls || scheme == Scheme::rdma_tls; }
};

Result<Address> parse_address(std::string_view text);

}  // namespace weir::rpc
