// Addresses as users write them: "tcp://HOST:PORT", "tls://...", "rdma://...", "rdma+tls://...",
// "unix:///PATH". An IPv6 host stands in brackets. A client may add "?fallback=tcp" to rdma:// and
// "?fallback=tls" to rdma+tls://. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rpc/error.hpp"
#include "transport/kind.hpp"

namespace weir::rpc {

using Scheme = transport::Kind;
using transport::name_of;

struct Address {
  Scheme scheme = Scheme::tcp;
  std::string host;
  std::uint16_t port = 0;
  std::string path;                // of a unix socket
  std::optional<Scheme> fallback;  // for clients: where RDMA does not work

  std::string text() const;
  bool secure() const { return is_tls(scheme); }
};

Result<Address> parse_address(std::string_view text);

}  // namespace weir::rpc
