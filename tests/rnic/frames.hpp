// Ethernet frames for tests: headers before a payload, byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace weir::rnic::test {

struct FrameShape {
  std::uint8_t destination = 0x20, source = 0x30;  // last byte of each MAC
  std::optional<std::uint16_t> vlan{};
  int ip = 4;                  // 4, 6 or 0
  std::uint8_t protocol = 17;  // UDP
  std::uint8_t host = 1;       // last byte of the source address
  std::uint16_t source_port = 1000, destination_port = 2000;
  std::uint16_t fragment = 0;  // IPv4: flags and offset
  std::size_t options = 0;     // IPv4: bytes of options
  std::size_t payload = 20;
};

inline void put(std::vector<std::byte>& to, std::initializer_list<unsigned> bytes) {
  for (const unsigned byte : bytes) to.push_back(static_cast<std::byte>(byte));
}
inline void put16(std::vector<std::byte>& to, unsigned value) { put(to, {value >> 8, value & 0xff}); }

inline std::vector<std::byte> frame(const FrameShape& shape = {}) {
  std::vector<std::byte> f;
  put(f, {2, 0, 0, 0, 0, shape.destination, 2, 0, 0, 0, 0, shape.source});
  if (shape.vlan) put16(f, 0x8100), put16(f, *shape.vlan);
  put16(f, shape.ip == 4 ? 0x0800 : shape.ip == 6 ? 0x86dd : 0x88b5);
  if (shape.ip == 4) {
    put(f, {0x40 | static_cast<unsigned>(5 + shape.options / 4), 0x2e});
    put16(f, static_cast<unsigned>(20 + shape.options + 8 + shape.payload));
    put16(f, 0), put16(f, shape.fragment);
    put(f, {63, shape.protocol, 0, 0, 10, 0, 0, shape.host, 10, 0, 0, 200});
    f.resize(f.size() + shape.options, std::byte{1});
  }
  if (shape.ip == 6) {
    put(f, {0x62, 0xe1, 0x23, 0x45});
    put16(f, static_cast<unsigned>(8 + shape.payload));
    put(f, {shape.protocol, 63, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, shape.host});
    put(f, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 200});
  }
  if (shape.ip != 0) {
    put16(f, shape.source_port), put16(f, shape.destination_port);
    put16(f, static_cast<unsigned>(8 + shape.payload)), put16(f, 0);
  }
  for (std::size_t i = 0; i < shape.payload; ++i) f.push_back(static_cast<std::byte>(i * 3 + 1));
  return f;
}

}  // namespace weir::rnic::test
