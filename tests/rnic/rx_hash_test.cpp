// The receive hash compared with the vectors that Microsoft publishes for it ("Verifying the RSS Hash
// Calculation"), and which frames have which fields.
#include "rnic/ethernet/rx_hash.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <bit>

#include "frames.hpp"

namespace weir::rnic::test {
namespace {

constexpr ToeplitzKey published_key{0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
                                    0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
                                    0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
                                    0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

struct Vector {
  int version;
  const char *source, *destination;
  std::uint16_t source_port, destination_port;
  std::uint32_t of_addresses, with_ports;
};
constexpr Vector vectors[] = {
    {4, "66.9.149.187", "161.142.100.80", 2794, 1766, 0x323e8fc2, 0x51ccc178},
    {4, "199.92.111.2", "65.69.140.83", 14230, 4739, 0xd718262a, 0xc626b0ea},
    {4, "24.19.198.95", "12.22.207.184", 12898, 38024, 0xd2d0a5de, 0x5c2b394a},
    {4, "38.27.205.30", "209.142.163.6", 48228, 2217, 0x82989176, 0xafc7327f},
    {4, "153.39.163.191", "202.188.127.2", 44251, 1303, 0x5d1809c5, 0x10e828a2},
    {6, "3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", 2794, 1766, 0x2cc18cd5, 0x40207d3d},
    {6, "3ffe:501:8::260:97ff:fe40:efab", "ff02::1", 14230, 4739, 0x0f0c461c, 0xdde51bbf},
    {6, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", "fe80::200:f8ff:fe21:67cf", 44251, 38024, 0x4b61e985,
     0x02d1feef},
};

FrameKey key_of(const Vector& vector, std::uint8_t protocol) {
  FrameKey key{};
  key.ip_version = static_cast<std::uint8_t>(vector.version);
  key.protocol = protocol;
  const int family = vector.version == 4 ? AF_INET : AF_INET6;
  EXPECT_EQ(::inet_pton(family, vector.source, key.source_ip), 1);
  EXPECT_EQ(::inet_pton(family, vector.destination, key.destination_ip), 1);
  key.source_port_be = htons(vector.source_port);
  key.destination_port_be = htons(vector.destination_port);
  return key;
}

TEST(RxHash, of_addresses_is_the_published_one) {
  for (const Vector& vector : vectors) {
    const std::uint32_t fields = vector.version == 4 ? rx_field::ipv4 : rx_field::ipv6;
    EXPECT_EQ(rx_hash({fields, published_key}, key_of(vector, protocol_tcp)), vector.of_addresses)
        << vector.source;
  }
}

TEST(RxHash, of_addresses_and_ports_is_the_published_one_for_tcp_and_udp) {
  for (const Vector& vector : vectors) {
    const std::uint32_t addresses = vector.version == 4 ? rx_field::ipv4 : rx_field::ipv6;
    EXPECT_EQ(rx_hash({addresses | rx_field::tcp, published_key}, key_of(vector, protocol_tcp)),
              vector.with_ports)
        << vector.source;
    EXPECT_EQ(rx_hash({addresses | rx_field::udp, published_key}, key_of(vector, protocol_udp)),
              vector.with_ports)
        << vector.source;
  }
}

TEST(RxHash, changes_with_each_field_it_is_over_and_with_no_other) {
  struct Field {
    const char* name;
    std::uint32_t fields;
    void (*change)(FrameKey&);
  };
  constexpr Field all[] = {
      {"source address", rx_field::source_ipv4 | rx_field::source_ipv6,
       [](FrameKey& key) { key.source_ip[3] ^= 1; }},
      {"destination address", rx_field::destination_ipv4 | rx_field::destination_ipv6,
       [](FrameKey& key) { key.destination_ip[3] ^= 1; }},
      {"source port", rx_field::source_port_tcp | rx_field::source_port_udp,
       [](FrameKey& key) { key.source_port_be ^= 1; }},
      {"destination port", rx_field::destination_port_tcp | rx_field::destination_port_udp,
       [](FrameKey& key) { key.destination_port_be ^= 1; }},
  };
  for (const int version : {4, 6}) {
    for (const std::uint8_t protocol : {protocol_tcp, protocol_udp}) {
      const std::uint32_t there = (version == 4 ? rx_field::ipv4 : rx_field::ipv6) |
                                  (protocol == protocol_tcp ? rx_field::tcp : rx_field::udp);
      for (const Field& over : all) {
        for (const Field& changed : all) {
          const RxHash hash{over.fields & there, published_key};
          FrameKey before = key_of(vectors[version == 4 ? 0 : 5], protocol), after = before;
          changed.change(after);
          EXPECT_EQ(rx_hash(hash, before) != rx_hash(hash, after), &over == &changed)
              << "IPv" << version << ", over " << over.name << ", changed " << changed.name;
        }
      }
    }
  }
}

TEST(RxHash, is_of_frames_that_have_its_fields) {
  struct Row {
    const char* name;
    std::uint32_t fields;
    FrameShape shape;
    bool hashed;
  };
  const Row rows[] = {
      {"no fields", 0, {}, false},
      {"ipv4", rx_field::ipv4, {}, true},
      {"ipv4 behind a vlan tag", rx_field::ipv4, {.vlan = 7}, true},
      {"ipv4 of ipv6", rx_field::ipv4, {.ip = 6}, false},
      {"ipv4 of neither", rx_field::ipv4, {.ip = 0}, false},
      {"ipv6", rx_field::source_ipv6, {.ip = 6}, true},
      {"ipv6 of ipv4", rx_field::source_ipv6, {}, false},
      {"ports of either ip", rx_field::udp, {.ip = 6}, true},
      {"ports of none", rx_field::udp, {.ip = 0}, false},
      {"tcp", rx_field::ipv4 | rx_field::tcp, {.protocol = protocol_tcp}, true},
      {"tcp of udp", rx_field::ipv4 | rx_field::tcp, {.protocol = protocol_udp}, false},
      {"udp of tcp", rx_field::source_port_udp, {.protocol = protocol_tcp}, false},
      {"ports of the first fragment", rx_field::ipv4 | rx_field::udp, {.fragment = 0x2000}, false},
      {"ports of a later fragment", rx_field::ipv4 | rx_field::udp, {.fragment = 0x0005}, false},
      {"ports, not to be fragmented", rx_field::ipv4 | rx_field::udp, {.fragment = 0x4000}, true},
      {"addresses of a fragment", rx_field::ipv4, {.fragment = 0x2000}, true},
  };
  for (const Row& row : rows)
    EXPECT_EQ(rx_hash({row.fields, published_key}, frame_key(frame(row.shape))).has_value(), row.hashed)
        << row.name;
}

TEST(RxHash, of_one_bit_is_the_key_from_its_place_on) {
  for (std::size_t place = 0; place < max_toeplitz_input_bytes * 8; ++place) {
    std::array<std::uint8_t, max_toeplitz_input_bytes> input{};
    input[place / 8] = static_cast<std::uint8_t>(0x80u >> place % 8);
    std::uint32_t bits = 0;
    for (std::size_t i = place; i < place + 32; ++i)
      bits = bits << 1 | (published_key[i / 8] >> (7 - i % 8) & 1u);
    EXPECT_EQ(toeplitz_hash(published_key, input), bits) << place;
  }
  EXPECT_EQ(toeplitz_hash(published_key, {}), 0u);
}

}  // namespace
}  // namespace weir::rnic::test
