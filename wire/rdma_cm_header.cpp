#include <algorithm>

#include "wire/byte_order.hpp"
#include "wire/mad.hpp"

namespace weir::wire {
namespace {

constexpr std::size_t address_bytes = 16;

CmAddress address_of(std::span<const std::byte> bytes) {
  CmAddress address{};
  std::ranges::transform(bytes, address.begin(),
                         [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return address;
}

// Keeps the four bytes of an IPv4 address: older forms of the header used the others differently.
void keep_ipv4(CmAddress& address) { std::fill_n(address.begin(), address.size() - 4, std::uint8_t{0}); }

}  // namespace

std::optional<RdmaService> rdma_service(std::uint64_t service_id) {
  const RdmaService service{static_cast<std::uint16_t>(service_id >> 16),
                            static_cast<std::uint16_t>(service_id)};
  const bool known = service.port_space == port_space_tcp || service.port_space == port_space_udp ||
                     service.port_space == port_space_ib;
  return known && service_id >> 32 == 0 ? std::optional(service) : std::nullopt;
}

void encode_rdma_cm_header(const RdmaCmHeader& header, std::span<std::byte, rdma_cm_header_bytes> to) {
  to[0] = std::byte{0};  // version
  to[1] = static_cast<std::byte>((header.ipv6 ? 6 : 4) << 4);
  to[2] = static_cast<std::byte>(header.source_port >> 8);
  to[3] = static_cast<std::byte>(header.source_port);
  std::ranges::copy(std::as_bytes(std::span(header.source)), to.begin() + 4);
  std::ranges::copy(std::as_bytes(std::span(header.destination)), to.begin() + 4 + address_bytes);
}

std::optional<RdmaCmHeader> parse_rdma_cm_header(std::span<const std::byte, rdma_cm_header_bytes> bytes) {
  Reader from(bytes);
  const auto version = from.number<std::uint8_t>();
  const auto ip_version = from.number<std::uint8_t>() >> 4;
  if (version != 0 || (ip_version != 4 && ip_version != 6)) return std::nullopt;
  RdmaCmHeader header;
  header.ipv6 = ip_version == 6;
  header.source_port = from.number<std::uint16_t>();
  header.source = address_of(from.take(address_bytes));
  header.destination = address_of(from.take(address_bytes));
  if (!header.ipv6) {
    keep_ipv4(header.source);
    keep_ipv4(header.destination);
  }
  return header;
}

}  // namespace weir::wire
