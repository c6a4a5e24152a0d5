#include "cluster/key_slot.hpp"

#include <array>

namespace weir::cluster {

namespace {

constexpr std::array<std::uint16_t, 256> make_crc_table() {
  constexpr unsigned polynomial = 0x1021;
  std::array<std::uint16_t, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) {
    unsigned rest = byte << 8;
    for (int bit = 0; bit < 8; ++bit) rest = (rest & 0x8000) != 0 ? rest << 1 ^ polynomial : rest << 1;
    table[byte] = static_cast<std::uint16_t>(rest);
  }
  return table;
}
constexpr auto crc_table = make_crc_table();

std::uint16_t crc16(std::string_view bytes) {
  unsigned crc = 0;
  for (const char c : bytes)
    crc = (crc << 8 ^ crc_table[(crc >> 8 ^ static_cast<unsigned char>(c)) & 0xff]) & 0xffff;
  return static_cast<std::uint16_t>(crc);
}

std::string_view hashed_part(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open == key.npos) return key;
  const std::size_t close = key.find('}', open + 1);
  return close == key.npos || close == open + 1 ? key : key.substr(open + 1, close - open - 1);
}

}  // namespace

std::uint16_t key_slot(std::string_view key) { return crc16(hashed_part(key)) % slot_count; }

}  // namespace weir::cluster
