#include "kv/rdb/checksum.hpp"

#include <array>
#include <cstring>

namespace weir::kv::rdb {

namespace {

constexpr std::uint64_t reflected_polynomial = 0x95ac9329ac4bc9b5u;

// tables[k][b] is the effect of byte b on the checksum when k zero bytes follow, so eight bytes take one
// step.
using Tables = std::array<std::array<std::uint64_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum & 1) != 0 ? sum >> 1 ^ reflected_polynomial : sum >> 1;
    tables[0][byte] = sum;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint64_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint64_t checksum(std::uint64_t sum, std::string_view bytes) {
  while (bytes.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    sum ^= word;
    sum = tables[7][sum & 0xff] ^ tables[6][sum >> 8 & 0xff] ^ tables[5][sum >> 16 & 0xff] ^
          tables[4][sum >> 24 & 0xff] ^ tables[3][sum >> 32 & 0xff] ^ tables[2][sum >> 40 & 0xff] ^
          tables[1][sum >> 48 & 0xff] ^ tables[0][sum >> 56];
    bytes.remove_prefix(8);
  }
  for (const char c : bytes) sum = tables[0][(sum ^ static_cast<unsigned char>(c)) & 0xff] ^ sum >> 8;
  return sum;
}

}  // namespace weir::kv::rdb
