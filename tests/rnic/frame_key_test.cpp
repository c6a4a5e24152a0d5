// Which fields are found in which frames, and that no field is read beyond the end of a frame.
#include "rnic/ethernet/frame_key.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "frames.hpp"

namespace weir::rnic::test {
namespace {

TEST(FrameKey, has_the_fields_of_ethernet) {
  const FrameKey key = frame_key(frame({.destination = 0x77, .source = 0x88, .ip = 0}));
  EXPECT_EQ(key.destination_mac[0], 2);
  EXPECT_EQ(key.destination_mac[5], 0x77);
  EXPECT_EQ(key.source_mac[5], 0x88);
  EXPECT_EQ(key.ether_type_be, htons(0x88b5));
  EXPECT_EQ(key.vlan_tag_be, 0);
  EXPECT_EQ(key.ip_version, 0);
}

TEST(FrameKey, has_the_fields_of_ip_and_ports_behind_any_headers_before_them) {
  for (const int ip : {4, 6}) {
    for (const bool tagged : {false, true}) {
      for (const std::uint8_t protocol : {std::uint8_t{6}, std::uint8_t{17}}) {
        SCOPED_TRACE(testing::Message() << "IPv" << ip << (tagged ? " tagged, " : ", ") << int{protocol});
        FrameShape shape{.ip = ip, .protocol = protocol, .host = 9};
        if (tagged) shape.vlan = 0xa123;
        const FrameKey key = frame_key(frame(shape));
        EXPECT_EQ(key.vlan_tag_be, tagged ? htons(0xa123) : 0);
        EXPECT_EQ(key.ether_type_be, htons(ip == 4 ? 0x0800 : 0x86dd)) << "the one behind the tag";
        EXPECT_EQ(key.ip_version, ip);
        EXPECT_EQ(key.protocol, protocol);
        EXPECT_EQ(key.traffic_class, 0x2e);
        EXPECT_EQ(key.hop_limit, 63);
        EXPECT_EQ(key.flow_label_be, ip == 6 ? htonl(0x12345) : 0);
        EXPECT_EQ(key.source_ip[ip == 4 ? 3 : 15], 9);
        EXPECT_EQ(key.destination_ip[ip == 4 ? 3 : 15], 200);
        EXPECT_EQ(key.source_port_be, htons(1000));
        EXPECT_EQ(key.destination_port_be, htons(2000));
      }
    }
  }
}

TEST(FrameKey, finds_ports_behind_ipv4_options_and_none_in_later_fragments_or_other_protocols) {
  struct Row {
    FrameShape shape;
    bool ports, fragment;
  };
  for (const Row& row : {Row{{.options = 12}, true, false}, Row{{.fragment = 0x4000}, true, false},
                         Row{{.fragment = 0x2000}, true, true}, Row{{.fragment = 0x0001}, false, true},
                         Row{{.protocol = 1}, false, false}}) {
    const FrameKey key = frame_key(frame(row.shape));
    EXPECT_EQ(key.source_port_be, row.ports ? htons(1000) : 0);
    EXPECT_EQ(key.destination_port_be, row.ports ? htons(2000) : 0);
    EXPECT_EQ(key.fragment, row.fragment);
  }
}

TEST(FrameKey, of_a_frame_cut_short_has_what_is_whole) {
  for (const FrameShape& shape :
       {FrameShape{.ip = 4}, FrameShape{.ip = 6}, FrameShape{.vlan = 7, .ip = 4, .options = 8}}) {
    const std::vector<std::byte> whole = frame(shape);
    for (std::size_t length = ethernet_header_bytes; length < whole.size(); ++length) {
      // A separate copy, so that a sanitizer sees any read beyond it.
      const std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
      const FrameKey key = frame_key(part);
      EXPECT_EQ(key.source_mac[5], 0x30);
      EXPECT_TRUE(key.source_port_be == 0 || key.ip_version != 0);
    }
    EXPECT_EQ(frame_key(whole).source_port_be, htons(1000));
  }
}

TEST(FrameKey, ignores_an_ip_header_of_another_version_than_the_ether_type_says) {
  std::vector<std::byte> wrong = frame({.ip = 4});
  wrong[ethernet_header_bytes] = std::byte{0x65};
  EXPECT_EQ(frame_key(wrong).ip_version, 0);
}

}  // namespace
}  // namespace weir::rnic::test
