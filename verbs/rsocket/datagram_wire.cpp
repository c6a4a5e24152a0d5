#include "verbs/rsocket/datagram_wire.hpp"

#include <concepts>

namespace weir::rsocket {
namespace {

constexpr std::uint32_t udp_tag = 0x55555555;
constexpr std::size_t udp_v4_bytes = 16, udp_v6_bytes = max_udp_header_bytes;
constexpr std::size_t ud_v4_bytes = 8, ud_v6_bytes = max_ud_header_bytes;
constexpr std::size_t v4_at = 12;  // in IpBytes
constexpr std::uint32_t max_qpn = 0xffffff;

bool is_v4(const cm::IpBytes& ip) { return cm::Endpoint{.ip = ip}.is_v4(); }

template <std::unsigned_integral T>
void put(std::vector<std::byte>& bytes, T value) {
  for (std::size_t i = sizeof value; i-- > 0;) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}
void put_ip(std::vector<std::byte>& bytes, const cm::IpBytes& ip) {
  for (std::size_t i = is_v4(ip) ? v4_at : 0; i < ip.size(); ++i) put(bytes, ip[i]);
}

std::uint8_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}
std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) value = value << 8 | byte_at(bytes, at + i);
  return value;
}
cm::IpBytes ip_at(std::span<const std::byte> bytes, std::size_t at, bool v4) {
  cm::IpBytes ip = v4 ? cm::any_v4().ip : cm::any_v6().ip;
  for (std::size_t i = v4 ? v4_at : 0; i < ip.size(); ++i) ip[i] = byte_at(bytes, at++);
  return ip;
}

// Version and length agree, and all of the header is there. Nothing: neither 4 nor 6.
std::optional<bool> is_v4_header(std::span<const std::byte> bytes, std::uint8_t version, std::uint8_t length,
                                 std::size_t v4_bytes, std::size_t v6_bytes) {
  const bool v4 = version == 4 && length == v4_bytes;
  const bool v6 = version == 6 && length == v6_bytes;
  if ((!v4 && !v6) || bytes.size() < length) return std::nullopt;
  return v4;
}

}  // namespace

void append(std::vector<std::byte>& bytes, const UdpHeader& header) {
  const bool v4 = is_v4(header.address);
  put(bytes, udp_tag);
  put(bytes, static_cast<std::uint8_t>(v4 ? 4 : 6));
  put(bytes, static_cast<std::uint8_t>(header.op));
  put(bytes, static_cast<std::uint8_t>(v4 ? udp_v4_bytes : udp_v6_bytes));
  put(bytes, std::uint8_t{0});
  put(bytes, header.qpn);
  put_ip(bytes, header.address);
}

void append(std::vector<std::byte>& bytes, const UdHeader& header) {
  const bool v4 = header.source.is_v4();
  put(bytes, static_cast<std::uint8_t>(v4 ? 4 : 6));
  put(bytes, static_cast<std::uint8_t>(v4 ? ud_v4_bytes : ud_v6_bytes));
  put(bytes, header.source.port);
  if (!v4) put(bytes, std::uint32_t{0});  // flow information
  put_ip(bytes, header.source.ip);
}

std::optional<Parsed<UdpHeader>> parse_udp(std::span<const std::byte> bytes) {
  if (bytes.size() < udp_v4_bytes || word_at(bytes, 0) != udp_tag) return std::nullopt;
  const auto v4 = is_v4_header(bytes, byte_at(bytes, 4), byte_at(bytes, 6), udp_v4_bytes, udp_v6_bytes);
  const auto op = static_cast<DatagramOp>(byte_at(bytes, 5));
  if (!v4 || (op != DatagramOp::data && op != DatagramOp::control)) return std::nullopt;
  const UdpHeader header{op, word_at(bytes, 8) & max_qpn, ip_at(bytes, 12, *v4)};
  return Parsed<UdpHeader>{header, bytes.subspan(*v4 ? udp_v4_bytes : udp_v6_bytes)};
}

std::optional<Parsed<UdHeader>> parse_ud(std::span<const std::byte> bytes) {
  if (bytes.size() < ud_v4_bytes) return std::nullopt;
  const auto v4 = is_v4_header(bytes, byte_at(bytes, 0), byte_at(bytes, 1), ud_v4_bytes, ud_v6_bytes);
  if (!v4) return std::nullopt;
  UdHeader header;
  header.source.port = static_cast<std::uint16_t>(byte_at(bytes, 2) << 8 | byte_at(bytes, 3));
  header.source.ip = ip_at(bytes, *v4 ? 4 : 8, *v4);
  return Parsed<UdHeader>{header, bytes.subspan(*v4 ? ud_v4_bytes : ud_v6_bytes)};
}

}  // namespace weir::rsocket
