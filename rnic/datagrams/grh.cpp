#include "rnic/datagrams/grh.hpp"

#include <algorithm>

namespace weir::rnic {
namespace {

constexpr std::size_t ipv4_at = 20, ipv4_bytes = 20, v4_in_gid = 12;
constexpr std::byte next_header_udp{17};
constexpr std::array<std::uint8_t, v4_in_gid> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

void put_16(std::byte* at, std::uint64_t value) {
  at[0] = static_cast<std::byte>(value >> 8);
  at[1] = static_cast<std::byte>(value);
}

void put(std::byte* at, std::span<const std::uint8_t> bytes) { std::ranges::copy(std::as_bytes(bytes), at); }

bool is_ipv6(std::span<const std::byte, grh_bytes> grh) { return (grh[0] >> 4) == std::byte{6}; }

}  // namespace

Grh write_grh(const GrhFields& fields) {
  Grh grh{};
  if (std::ranges::equal(std::span(fields.destination).first<v4_in_gid>(), mapped)) {
    std::byte* const ip = grh.data() + ipv4_at;
    ip[0] = std::byte{0x45};
    ip[1] = std::byte{fields.traffic_class};
    ip[6] = std::byte{0x40};  // DF, as in every RoCE v2 packet
    ip[8] = std::byte{fields.hop_limit};
    ip[9] = next_header_udp;
    put(ip + 12, std::span(fields.source).subspan(v4_in_gid));
    put(ip + 16, std::span(fields.destination).subspan(v4_in_gid));
    return grh;
  }
  const std::uint32_t first =
      6u << 28 | std::uint32_t{fields.traffic_class} << 20 | (fields.flow_label & 0xfffff);
  put_16(grh.data(), first >> 16);
  put_16(grh.data() + 2, first);
  grh[6] = next_header_udp;
  grh[7] = std::byte{fields.hop_limit};
  put(grh.data() + 8, fields.source);
  put(grh.data() + 24, fields.destination);
  return grh;
}

// The length counts the UDP header, BTH, DETH, immediate, padded payload and ICRC. The checksum
// is that of IPv4 (RFC 791).
void finish_grh(std::span<std::byte, grh_bytes> grh, std::uint64_t payload_bytes, bool has_imm) {
  const std::uint64_t behind = 8 + 12 + 8 + (has_imm ? 4 : 0) + (payload_bytes + 3) / 4 * 4 + 4;
  if (is_ipv6(grh)) return put_16(grh.data() + 4, behind);
  std::byte* const ip = grh.data() + ipv4_at;
  if ((ip[0] >> 4) != std::byte{4}) return;  // without an address
  put_16(ip + 2, ipv4_bytes + behind);
  put_16(ip + 10, 0);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < ipv4_bytes; i += 2)
    sum += std::to_integer<std::uint32_t>(ip[i]) << 8 | std::to_integer<std::uint32_t>(ip[i + 1]);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  put_16(ip + 10, ~sum & 0xffff);
}

GrhFields read_grh(std::span<const std::byte, grh_bytes> grh) {
  const auto at = [&](std::size_t i) { return std::to_integer<std::uint8_t>(grh[i]); };
  GrhFields fields;
  const auto take = [&](std::size_t from, std::size_t into, Gid& gid) {
    for (std::size_t i = into; i < gid.size(); ++i) gid[i] = at(from + i - into);
  };
  if (is_ipv6(grh)) {
    take(8, 0, fields.source);
    take(24, 0, fields.destination);
    fields.traffic_class = static_cast<std::uint8_t>(at(0) << 4 | at(1) >> 4);
    fields.hop_limit = at(7);
    fields.flow_label = (at(1) & 0xfu) << 16 | std::uint32_t{at(2)} << 8 | at(3);
    return fields;
  }
  std::ranges::copy(mapped, fields.source.begin());
  std::ranges::copy(mapped, fields.destination.begin());
  take(ipv4_at + 12, v4_in_gid, fields.source);
  take(ipv4_at + 16, v4_in_gid, fields.destination);
  fields.traffic_class = at(ipv4_at + 1);
  fields.hop_limit = at(ipv4_at + 8);
  return fields;
}

}  // namespace weir::rnic
