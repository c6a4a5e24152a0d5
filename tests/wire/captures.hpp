// The packets of the captures in golden/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace weir::wire::test {

// The Ethernet packets of a classic pcap file in this machine's byte order.
inline std::vector<std::vector<std::byte>> packets_of(const std::string& name) {
  std::ifstream file(std::filesystem::path(GOLDEN_DIRECTORY) / name, std::ios::binary);
  const std::string all(std::istreambuf_iterator<char>(file), {});
  constexpr std::size_t file_header = 24, packet_header = 16;
  std::vector<std::vector<std::byte>> packets;
  for (std::size_t at = file_header; at + packet_header <= all.size();) {
    std::uint32_t kept = 0;
    std::memcpy(&kept, all.data() + at + 8, sizeof kept);
    at += packet_header;
    const auto* bytes = reinterpret_cast<const std::byte*>(all.data() + at);
    packets.emplace_back(bytes, bytes + kept);
    at += kept;
  }
  return packets;
}

}  // namespace weir::wire::test
