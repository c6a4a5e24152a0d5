// The fields of an Ethernet frame that steering rules look at, taken out of the headers once for each frame.
//
// A key and a rule's mask are compared as eight words. Fields that a frame does not have are zero;
// `ip_version` and `protocol` say which are there. Fields of more than one byte are in network order.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weir::rnic {

struct FrameKey {
  std::uint8_t destination_mac[6], source_mac[6];
  std::uint16_t ether_type_be;  // behind an 802.1Q tag, if there is one
  std::uint16_t vlan_tag_be;    // priority, DEI and VLAN ID; 0: untagged
  std::uint8_t ip_version;      // 4, 6 or 0
  std::uint8_t protocol, traffic_class, hop_limit;
  std::uint32_t flow_label_be;                     // IPv6
  std::uint8_t source_ip[16], destination_ip[16];  // IPv4: the first four bytes
  std::uint16_t source_port_be, destination_port_be;
  std::uint8_t fragment;  // IPv4: 1 for each fragment of a datagram, the first included
  std::uint8_t unused[3];
};
using FrameWords = std::array<std::uint64_t, 8>;
static_assert(sizeof(FrameKey) == sizeof(FrameWords), "no padding: every byte is compared");

inline FrameWords words_of(const FrameKey& key) { return std::bit_cast<FrameWords>(key); }

inline constexpr std::size_t ethernet_header_bytes = 14;
inline constexpr std::uint8_t protocol_tcp = 6, protocol_udp = 17;

// The frame has at least an Ethernet header. Headers that are cut short count as not there.
FrameKey frame_key(std::span<const std::byte> frame);

}  // namespace weir::rnic
