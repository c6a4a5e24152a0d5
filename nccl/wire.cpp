#include "nccl/wire.hpp"

#include <algorithm>
#include <asio/ip/address_v4.hpp>
#include <asio/ip/address_v6.hpp>
#include <cstring>

namespace weir::nccl {

Handle make_handle(const rdma::Endpoint& address, std::uint64_t secret) {
  Handle handle{};
  handle.magic = Handle::expected_magic;
  handle.protocol = protocol;
  handle.port = address.port();
  handle.secret = secret;
  if (address.address().is_v4()) {
    handle.family = AF_INET;
    const auto bytes = address.address().to_v4().to_bytes();
    std::ranges::copy(bytes, handle.address.begin());
  } else {
    handle.family = AF_INET6;
    const asio::ip::address_v6 v6 = address.address().to_v6();
    std::ranges::copy(v6.to_bytes(), handle.address.begin());
    handle.scope = static_cast<std::uint32_t>(v6.scope_id());
  }
  return handle;
}

std::optional<rdma::Endpoint> address_of(const Handle& handle) {
  if (handle.magic != Handle::expected_magic || handle.protocol != protocol || handle.port == 0)
    return std::nullopt;
  if (handle.family == AF_INET) {
    asio::ip::address_v4::bytes_type bytes;
    std::copy_n(handle.address.begin(), bytes.size(), bytes.begin());
    return rdma::Endpoint(asio::ip::address_v4(bytes), handle.port);
  }
  if (handle.family != AF_INET6) return std::nullopt;
  asio::ip::address_v6::bytes_type bytes;
  std::ranges::copy(handle.address, bytes.begin());
  return rdma::Endpoint(asio::ip::address_v6(bytes, handle.scope), handle.port);
}

std::optional<Hello> parse_hello(std::span<const std::byte> private_data) {
  Hello hello;
  if (private_data.size() < sizeof hello) return std::nullopt;
  std::memcpy(&hello, private_data.data(), sizeof hello);
  if (hello.magic != Hello::expected_magic || hello.protocol != protocol || hello.slots != slots)
    return std::nullopt;
  return hello;
}

bool is_welcome(std::span<const std::byte> private_data) {
  Welcome welcome;
  if (private_data.size() < sizeof welcome) return false;
  std::memcpy(&welcome, private_data.data(), sizeof welcome);
  return welcome.magic == Hello::expected_magic && welcome.protocol == protocol;
}

}  // namespace weir::nccl
