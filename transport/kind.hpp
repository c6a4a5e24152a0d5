// The five kinds of connection, and what users type for each: tcp, unix, tls, rdma, rdma+tls. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::transport {

enum class Kind : std::uint8_t { tcp, unix_socket, tls, rdma, rdma_tls };

std::string_view name_of(Kind);
// Also accepts other and former names of TLS over RDMA: tls+rdma, rdma-tls, weirs+rdma.
std::optional<Kind> kind_named(std::string_view name);

constexpr bool is_tls(Kind kind) { return kind == Kind::tls || kind == Kind::rdma_tls; }
constexpr bool is_rdma(Kind kind) { return kind == Kind::rdma || kind == Kind::rdma_tls; }

}  // namespace weir::transport
