#include "wire/roce.hpp"

#include <algorithm>

#include "wire/byte_order.hpp"
#include "wire/icrc.hpp"

namespace weir::wire {
namespace {

constexpr std::uint16_t ethertype_ipv4 = 0x0800, ethertype_ipv6 = 0x86dd;
constexpr std::uint8_t protocol_udp = 17;
constexpr std::size_t ethernet_bytes = 14, ipv4_bytes = 20, ipv6_bytes = 40, udp_bytes = 8;
constexpr std::size_t reserved_bytes = 16;  // of a CNP

// RFC 1071; an odd last byte counts as if a zero followed. `sum`: that of the preceding bytes.
std::uint32_t add_up(std::span<const std::byte> bytes, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    sum += std::to_integer<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  return sum;
}
std::uint16_t folded(std::uint32_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}
std::uint16_t internet_checksum(std::span<const std::byte> bytes) { return folded(add_up(bytes)); }

void put_ip(std::vector<std::byte>& to, const Ipv4& ip, std::size_t udp) {
  const std::size_t start = to.size();
  put(to, std::uint8_t{0x45});
  put(to, ip.tos);
  put(to, static_cast<std::uint16_t>(ipv4_bytes + udp));
  put(to, ip.id);
  put(to, ip.fragment);
  put(to, ip.ttl);
  put(to, protocol_udp);
  put(to, std::uint16_t{0});
  put(to, std::as_bytes(std::span(ip.source)));
  put(to, std::as_bytes(std::span(ip.destination)));
  const std::uint16_t sum = internet_checksum(std::span(to).subspan(start));
  to[start + 10] = static_cast<std::byte>(sum >> 8);
  to[start + 11] = static_cast<std::byte>(sum);
}

void put_ip(std::vector<std::byte>& to, const Ipv6& ip, std::size_t udp) {
  put(to, 0x60000000u | std::uint32_t{ip.traffic_class} << 20 | (ip.flow_label & 0xfffff));
  put(to, static_cast<std::uint16_t>(udp));
  put(to, protocol_udp);
  put(to, ip.hop_limit);
  put(to, std::as_bytes(std::span(ip.source)));
  put(to, std::as_bytes(std::span(ip.destination)));
}

template <std::size_t n>
std::array<std::uint8_t, n> octets(Reader& from) {
  std::array<std::uint8_t, n> value{};
  const auto bytes = from.take(n);
  std::ranges::transform(bytes, value.begin(), [](std::byte b) { return std::to_integer<std::uint8_t>(b); });
  return value;
}

// Reads the IP header; returns the length of what follows it. nullopt: it does not carry UDP.
std::optional<std::size_t> take_ip(Reader& from, std::span<const std::byte> header, Ipv4& ip) {
  if (from.number<std::uint8_t>() != 0x45) return std::nullopt;  // options: RoCE uses none
  ip.tos = from.number<std::uint8_t>();
  const auto total = from.number<std::uint16_t>();
  ip.id = from.number<std::uint16_t>();
  ip.fragment = from.number<std::uint16_t>();
  ip.ttl = from.number<std::uint8_t>();
  const auto protocol = from.number<std::uint8_t>();
  from.take(2);
  ip.source = octets<4>(from);
  ip.destination = octets<4>(from);
  const bool whole = (ip.fragment & 0x3fff) == 0 && (ip.fragment & 0x8000) == 0;
  if (from.failed() || protocol != protocol_udp || total < ipv4_bytes || !whole) return std::nullopt;
  if (internet_checksum(header.first(ipv4_bytes)) != 0) return std::nullopt;
  return total - ipv4_bytes;
}

std::optional<std::size_t> take_ip(Reader& from, std::span<const std::byte>, Ipv6& ip) {
  const auto first = from.number<std::uint32_t>();
  ip.traffic_class = static_cast<std::uint8_t>(first >> 20);
  ip.flow_label = first & 0xfffff;
  const auto length = from.number<std::uint16_t>();
  const auto next = from.number<std::uint8_t>();
  ip.hop_limit = from.number<std::uint8_t>();
  ip.source = octets<16>(from);
  ip.destination = octets<16>(from);
  if (from.failed() || first >> 28 != 6 || next != protocol_udp) return std::nullopt;
  return length;
}

// Writes big-endian numbers into a header.
class Writer {
 public:
  explicit Writer(std::span<std::byte, longest_headers> to) : start_(to.data()), at_(to.data()) {}
  template <std::unsigned_integral T>
  void put(T value) {
    for (std::size_t i = sizeof value; i-- > 0;) *at_++ = static_cast<std::byte>(value >> (8 * i));
  }
  std::size_t written() const { return static_cast<std::size_t>(at_ - start_); }

 private:
  std::byte* start_;
  std::byte* at_;
};

bool reserved_is_zero(std::uint32_t word) { return word >> 24 == 0; }

// Reads the extended headers. False: a reserved field is not zero.
bool take_extensions(Reader& from, Packet& p, unsigned has) {
  bool sound = true;
  if (has & extension::deth) {
    p.deth.qkey = from.number<std::uint32_t>();
    p.deth.source = from.number<std::uint32_t>();
    sound = sound && reserved_is_zero(p.deth.source);
  }
  if (has & extension::xrceth) {
    p.srqn = from.number<std::uint32_t>();
    sound = sound && reserved_is_zero(p.srqn);
  }
  if (has & extension::reth) {
    p.reth.addr = from.number<std::uint64_t>();
    p.reth.rkey = from.number<std::uint32_t>();
    p.reth.length = from.number<std::uint32_t>();
  }
  if (has & extension::atomic_eth) {
    p.atomic.addr = from.number<std::uint64_t>();
    p.atomic.rkey = from.number<std::uint32_t>();
    p.atomic.swap_or_add = from.number<std::uint64_t>();
    p.atomic.compare = from.number<std::uint64_t>();
  }
  if (has & extension::aeth) {
    const auto word = from.number<std::uint32_t>();
    p.aeth = {static_cast<std::uint8_t>(word >> 24), word & 0xffffff};
  }
  if (has & extension::atomic_ack_eth) p.original = from.number<std::uint64_t>();
  if (has & extension::imm) p.imm = from.number<std::uint32_t>();
  if (has & extension::ieth) p.invalidate = from.number<std::uint32_t>();
  if (has & extension::reserved)
    sound =
        sound && std::ranges::all_of(from.take(reserved_bytes), [](std::byte b) { return b == std::byte{}; });
  return sound;
}

}  // namespace

std::size_t encode_headers(const Packet& p, std::size_t payload, std::span<std::byte, longest_headers> into) {
  const unsigned has = extensions_of(p.bth.opcode).value_or(0);
  Writer to(into);
  to.put(p.bth.opcode);
  to.put(static_cast<std::uint8_t>(p.bth.solicited << 7 | p.bth.migrated << 6 | pad_of(payload) << 4 |
                                   (p.bth.version & 15)));
  to.put(p.bth.pkey);
  to.put(std::uint32_t{p.bth.variable} << 24 | (p.bth.destination & 0xffffff));
  to.put((p.bth.ack_request ? 0x80000000u : 0u) | (p.bth.psn & 0xffffff));
  if (has & extension::deth) {
    to.put(p.deth.qkey);
    to.put(p.deth.source & 0xffffff);
  }
  if (has & extension::xrceth) to.put(p.srqn & 0xffffff);
  if (has & extension::reth) {
    to.put(p.reth.addr);
    to.put(p.reth.rkey);
    to.put(p.reth.length);
  }
  if (has & extension::atomic_eth) {
    to.put(p.atomic.addr);
    to.put(p.atomic.rkey);
    to.put(p.atomic.swap_or_add);
    to.put(p.atomic.compare);
  }
  if (has & extension::aeth) to.put(std::uint32_t{p.aeth.syndrome} << 24 | (p.aeth.msn & 0xffffff));
  if (has & extension::atomic_ack_eth) to.put(p.original);
  if (has & extension::imm) to.put(p.imm);
  if (has & extension::ieth) to.put(p.invalidate);
  for (std::size_t i = 0; (has & extension::reserved) && i < reserved_bytes; ++i) to.put(std::uint8_t{0});
  return to.written();
}

std::uint32_t destination_of(std::span<const std::byte> from_bth) {
  constexpr std::size_t at = 4;
  Reader from(from_bth);
  from.take(at);
  const auto word = from.number<std::uint32_t>();
  return from.failed() ? 0 : word & 0xffffff;
}

std::optional<Packet> parse_transport(std::span<const std::byte> bytes) {
  Packet p;
  Reader from(bytes);
  p.bth.opcode = from.number<std::uint8_t>();
  const auto has = extensions_of(p.bth.opcode);
  if (!has) return std::nullopt;
  const auto flags = from.number<std::uint8_t>();
  p.bth.solicited = flags & 0x80;
  p.bth.migrated = flags & 0x40;
  const std::uint8_t pad = flags >> 4 & 3;
  p.bth.version = flags & 15;
  p.bth.pkey = from.number<std::uint16_t>();
  const auto destination = from.number<std::uint32_t>(), psn = from.number<std::uint32_t>();
  p.bth.variable = static_cast<std::uint8_t>(destination >> 24);
  p.bth.destination = destination & 0xffffff;
  p.bth.ack_request = psn >> 31 != 0;
  p.bth.psn = psn & 0xffffff;
  const bool sound = take_extensions(from, p, *has) && (psn & 0x7f000000u) == 0;
  if (from.failed() || from.left() < pad) return std::nullopt;
  p.payload = from.take(from.left() - pad);
  const auto padding = from.take(pad);
  if ((*has & extension::payload) == 0 && !p.payload.empty()) return std::nullopt;
  const bool padded = pad == pad_of(p.payload.size()) &&
                      std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; });
  return sound && padded ? std::optional(p) : std::nullopt;
}

namespace {

void put_headers(std::vector<std::byte>& to, const Route& route, std::size_t udp, std::uint16_t checksum) {
  to.reserve(ethernet_bytes + ipv6_bytes + udp);
  put(to, std::as_bytes(std::span(route.destination)));
  put(to, std::as_bytes(std::span(route.source)));
  put(to, std::holds_alternative<Ipv6>(route.ip) ? ethertype_ipv6 : ethertype_ipv4);
  std::visit([&](const auto& ip) { put_ip(to, ip, udp); }, route.ip);
  put(to, route.source_port);
  put(to, roce_port);
  put(to, static_cast<std::uint16_t>(udp));
  put(to, checksum);
}

// RFC 768 and RFC 8200, 8.1: covers both addresses, the protocol, the length, the header and the payload.
std::uint16_t udp_checksum(const Route& route, std::span<const std::byte> udp) {
  const auto length = static_cast<std::uint32_t>(udp.size());
  const std::uint32_t addresses = std::visit(
      [](const auto& ip) {
        return add_up(std::as_bytes(std::span(ip.destination)), add_up(std::as_bytes(std::span(ip.source))));
      },
      route.ip);
  const std::uint16_t sum = folded(add_up(udp, addresses + protocol_udp + length));
  return sum != 0 ? sum : std::uint16_t{0xffff};  // 0 would say that there is no checksum
}

}  // namespace

std::vector<std::byte> encode(const Frame& frame) {
  const auto payload = frame.packet.payload;
  std::array<std::byte, longest_headers> headers;
  const std::size_t header_bytes = encode_headers(frame.packet, payload.size(), headers);
  const std::size_t udp = udp_bytes + header_bytes + payload.size() + pad_of(payload.size()) + icrc_bytes;
  std::vector<std::byte> to;
  put_headers(to, frame.route, udp, frame.route.udp_checksum);
  put(to, std::span(headers).first(header_bytes));
  put(to, payload);
  put(to, 0, pad_of(payload.size()));
  const std::uint32_t crc = icrc(std::span(to).subspan(ethernet_bytes));
  for (unsigned i = 0; i < icrc_bytes; ++i) to.push_back(static_cast<std::byte>(crc >> (8 * i)));
  return to;
}

std::vector<std::byte> encapsulate(const Route& route, std::span<const std::byte> udp_payload) {
  std::vector<std::byte> to;
  put_headers(to, route, udp_bytes + udp_payload.size(), 0);
  const std::size_t udp_at = to.size() - udp_bytes;
  put(to, udp_payload);
  const std::uint16_t sum = udp_checksum(route, std::span(to).subspan(udp_at));
  to[udp_at + 6] = static_cast<std::byte>(sum >> 8);
  to[udp_at + 7] = static_cast<std::byte>(sum);
  return to;
}

std::optional<Frame> parse(std::span<const std::byte> bytes) {
  Frame frame;
  Reader from(bytes);
  frame.route.destination = octets<6>(from);
  frame.route.source = octets<6>(from);
  const auto ethertype = from.number<std::uint16_t>();
  if (from.failed() || (ethertype != ethertype_ipv4 && ethertype != ethertype_ipv6)) return std::nullopt;
  const auto packet = bytes.subspan(ethernet_bytes);
  if (ethertype == ethertype_ipv6) frame.route.ip = Ipv6{};
  const auto behind_ip = std::visit([&](auto& ip) { return take_ip(from, packet, ip); }, frame.route.ip);
  if (!behind_ip || *behind_ip > from.left()) return std::nullopt;
  const std::size_t ip_bytes = ethertype == ethertype_ipv6 ? ipv6_bytes : ipv4_bytes;

  frame.route.source_port = from.number<std::uint16_t>();
  const auto port = from.number<std::uint16_t>(), length = from.number<std::uint16_t>(),
             checksum = from.number<std::uint16_t>();
  if (from.failed() || port != roce_port || length != *behind_ip) return std::nullopt;
  if (length < udp_bytes + icrc_bytes) return std::nullopt;
  frame.route.udp_checksum = checksum;
  const auto transport = parse_transport(from.take(length - udp_bytes - icrc_bytes));
  if (!transport) return std::nullopt;
  frame.packet = *transport;
  std::uint32_t crc = 0;
  const auto stored = from.take(icrc_bytes);
  for (unsigned i = 0; i < icrc_bytes; ++i) crc |= std::to_integer<std::uint32_t>(stored[i]) << (8 * i);
  if (crc != icrc(packet.first(ip_bytes + length - icrc_bytes))) return std::nullopt;
  return frame;
}

}  // namespace weir::wire
