#include "wire/icrc.hpp"

#include <algorithm>
#include <array>

namespace weir::wire {
namespace {

constexpr std::array<std::uint32_t, 256> crc_table = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    table[i] = crc;
  }
  return table;
}();

std::uint32_t add(std::uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes)
    crc = crc >> 8 ^ crc_table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  return crc;
}

constexpr std::byte ones{0xff};
constexpr std::size_t udp_bytes = 8, udp_checksum = 6, bth_reserved = 4, longest_masked = 40 + udp_bytes + 12;

}  // namespace

std::uint32_t icrc(std::span<const std::byte> packet) {
  std::array<std::byte, longest_masked> masked{};
  const std::size_t head = std::min(packet.size(), masked.size());
  std::copy_n(packet.begin(), head, masked.begin());
  const bool v6 = head != 0 && std::to_integer<unsigned>(masked[0]) >> 4 == 6;
  const std::size_t ip_bytes = v6 ? 40 : (std::to_integer<std::size_t>(masked[0]) & 15) * 4;
  if (v6) {  // traffic class, flow label, hop limit
    masked[0] |= std::byte{0x0f};
    for (const std::size_t at : {1, 2, 3, 7}) masked[at] = ones;
  } else {  // TOS, TTL, checksum
    for (const std::size_t at : {1, 8, 10, 11}) masked[at] = ones;
  }
  if (ip_bytes + udp_bytes + bth_reserved < masked.size()) {
    masked[ip_bytes + udp_checksum] = masked[ip_bytes + udp_checksum + 1] = ones;
    masked[ip_bytes + udp_bytes + bth_reserved] = ones;
  }
  // Eight bytes of ones stand for the LRH, which there is none of on Ethernet.
  constexpr std::array<std::byte, 8> lrh = {ones, ones, ones, ones, ones, ones, ones, ones};
  std::uint32_t crc = add(0xffffffffu, lrh);
  crc = add(crc, std::span(masked).first(head));
  return ~add(crc, packet.subspan(head));
}

}  // namespace weir::wire
