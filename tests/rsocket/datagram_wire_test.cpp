// The headers of datagram rsockets. The golden values come from rdma-core.
#include "verbs/rsocket/datagram_wire.hpp"

#include <gmock/gmock.h>

namespace weir::rsocket {
namespace {

cm::IpBytes v4(std::uint8_t a, std::uint8_t b, std::uint8_t c, std::uint8_t d) {
  auto ip = cm::any_v4().ip;
  ip[12] = a, ip[13] = b, ip[14] = c, ip[15] = d;
  return ip;
}
cm::IpBytes v6() {
  cm::IpBytes ip{0xfe, 0x80};
  ip[15] = 9;
  return ip;
}

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) bytes.push_back(static_cast<std::byte>(number));
  return bytes;
}
template <class Header>
std::vector<std::byte> encoded(const Header& header) {
  std::vector<std::byte> bytes;
  append(bytes, header);
  return bytes;
}

TEST(UdpHeader, of_ipv4_has_16_bytes) {
  EXPECT_EQ(encoded(UdpHeader{DatagramOp::control, 0x123456, v4(127, 0, 0, 1)}),
            bytes_of({0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0x12, 0x34, 0x56, 127, 0, 0, 1}));
}
TEST(UdpHeader, of_ipv6_has_28_bytes) {
  EXPECT_EQ(encoded(UdpHeader{DatagramOp::data, 2, v6()}),
            bytes_of({0x55, 0x55, 0x55, 0x55, 6, 0, 28, 0, 0, 0, 0, 2,  //
                      0xfe, 0x80, 0,    0,    0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0, 9}));
}
TEST(UdHeader, of_ipv4_has_8_bytes) {
  EXPECT_EQ(encoded(UdHeader{{.ip = v4(10, 0, 0, 3), .port = 0x1234}}),
            bytes_of({4, 8, 0x12, 0x34, 10, 0, 0, 3}));
}
TEST(UdHeader, of_ipv6_has_24_bytes) {
  EXPECT_EQ(encoded(UdHeader{{.ip = v6(), .port = 1}}),
            bytes_of({6, 24, 0, 1, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}));
}

TEST(DatagramHeaders, come_back_with_the_bytes_behind_them) {
  for (const auto& ip : {v4(1, 2, 3, 4), v6()}) {
    auto udp = encoded(UdpHeader{DatagramOp::data, 77, ip});
    udp.push_back(std::byte{42});
    const auto through_udp = parse_udp(udp);
    ASSERT_TRUE(through_udp);
    EXPECT_EQ(through_udp->header.qpn, 77U);
    EXPECT_EQ(through_udp->header.address, ip);
    EXPECT_THAT(through_udp->rest, testing::ElementsAre(std::byte{42}));
    auto ud = encoded(UdHeader{{.ip = ip, .port = 88}});
    ud.push_back(std::byte{43});
    const auto through_ud = parse_ud(ud);
    ASSERT_TRUE(through_ud);
    EXPECT_EQ(through_ud->header.source.port, 88);
    EXPECT_EQ(through_ud->header.source.ip, ip);
    EXPECT_THAT(through_ud->rest, testing::ElementsAre(std::byte{43}));
  }
}

TEST(DatagramHeaders, cut_short_are_refused) {
  for (const auto& ip : {v4(1, 2, 3, 4), v6()}) {
    const auto udp = encoded(UdpHeader{DatagramOp::data, 77, ip});
    for (std::size_t size = 0; size < udp.size(); ++size)
      EXPECT_FALSE(parse_udp(std::span(udp).first(size))) << size;
    const auto ud = encoded(UdHeader{{.ip = ip, .port = 88}});
    for (std::size_t size = 0; size < ud.size(); ++size)
      EXPECT_FALSE(parse_ud(std::span(ud).first(size))) << size;
  }
}

struct Spoiled {
  const char* what;
  std::size_t at;
  int value;
};
class SpoiledUdpHeader : public testing::TestWithParam<Spoiled> {};
TEST_P(SpoiledUdpHeader, is_refused) {
  auto bytes = encoded(UdpHeader{DatagramOp::data, 77, v4(1, 2, 3, 4)});
  bytes[GetParam().at] = static_cast<std::byte>(GetParam().value);
  EXPECT_FALSE(parse_udp(bytes)) << GetParam().what;
}
INSTANTIATE_TEST_SUITE_P(Each, SpoiledUdpHeader,
                         testing::Values(Spoiled{"another tag", 0, 0x54}, Spoiled{"version 5", 4, 5},
                                         Spoiled{"version 6 with the length of 4", 4, 6},
                                         Spoiled{"unknown op", 5, 1},
                                         Spoiled{"length of the other version", 6, 28}));

}  // namespace
}  // namespace weir::rsocket
