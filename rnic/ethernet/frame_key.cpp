#include "rnic/ethernet/frame_key.hpp"

#include <cstring>

namespace weir::rnic {
namespace {

constexpr std::uint16_t ether_type_ipv4 = 0x0800, ether_type_ipv6 = 0x86dd, ether_type_vlan = 0x8100;
constexpr std::size_t ipv4_header_bytes = 20, ipv6_header_bytes = 40, ports_bytes = 4;

// The rest of the frame, from its front.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> left) : left_(left) {}
  bool have(std::size_t count) const { return left_.size() >= count; }
  std::uint8_t u8(std::size_t at) const { return std::to_integer<std::uint8_t>(left_[at]); }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(u8(at) << 8 | u8(at + 1)); }
  void copy(std::size_t at, void* to, std::size_t count) const { std::memcpy(to, left_.data() + at, count); }
  void skip(std::size_t count) { left_ = left_.subspan(count); }

 private:
  std::span<const std::byte> left_;
};

void read_ports(Bytes bytes, FrameKey& key) {
  const bool has_ports = key.protocol == protocol_tcp || key.protocol == protocol_udp;
  if (!has_ports || !bytes.have(ports_bytes)) return;
  bytes.copy(0, &key.source_port_be, 2);
  bytes.copy(2, &key.destination_port_be, 2);
}

void read_ipv4(Bytes bytes, FrameKey& key) {
  if (!bytes.have(ipv4_header_bytes) || bytes.u8(0) >> 4 != 4) return;
  const std::size_t header_bytes = std::size_t{bytes.u8(0)} % 16 * 4;
  key.ip_version = 4;
  key.traffic_class = bytes.u8(1);
  key.hop_limit = bytes.u8(8);
  key.protocol = bytes.u8(9);
  bytes.copy(12, key.source_ip, 4);
  bytes.copy(16, key.destination_ip, 4);
  const std::uint16_t offset = bytes.u16(6) & 0x1fff;
  const bool more_fragments = bytes.u16(6) & 0x2000;
  key.fragment = offset != 0 || more_fragments;
  if (offset != 0 || header_bytes < ipv4_header_bytes || !bytes.have(header_bytes)) return;
  bytes.skip(header_bytes);
  read_ports(bytes, key);
}

void read_ipv6(Bytes bytes, FrameKey& key) {
  if (!bytes.have(ipv6_header_bytes) || bytes.u8(0) >> 4 != 6) return;
  key.ip_version = 6;
  key.traffic_class = static_cast<std::uint8_t>(bytes.u16(0) >> 4);
  bytes.copy(0, &key.flow_label_be, 4);
  const std::uint8_t label_only[4] = {0, 0x0f, 0xff, 0xff};
  key.flow_label_be &= std::bit_cast<std::uint32_t>(label_only);
  key.protocol = bytes.u8(6);
  key.hop_limit = bytes.u8(7);
  bytes.copy(8, key.source_ip, 16);
  bytes.copy(24, key.destination_ip, 16);
  bytes.skip(ipv6_header_bytes);
  read_ports(bytes, key);
}

}  // namespace

FrameKey frame_key(std::span<const std::byte> frame) {
  FrameKey key{};
  Bytes bytes(frame);
  bytes.copy(0, key.destination_mac, 6);
  bytes.copy(6, key.source_mac, 6);
  std::size_t type_at = 12;
  if (bytes.u16(type_at) == ether_type_vlan && bytes.have(ethernet_header_bytes + 4)) {
    bytes.copy(14, &key.vlan_tag_be, 2);
    type_at = 16;
  }
  bytes.copy(type_at, &key.ether_type_be, 2);
  const std::uint16_t ether_type = bytes.u16(type_at);
  bytes.skip(type_at + 2);
  if (ether_type == ether_type_ipv4) read_ipv4(bytes, key);
  if (ether_type == ether_type_ipv6) read_ipv6(bytes, key);
  return key;
}

}  // namespace weir::rnic
