// Packets compared with those of the Linux kernel's Soft-RoCE (golden/, captured between two machines), and
// packets that must be refused.
#include "wire/roce.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "captures.hpp"
#include "wire/pcapng.hpp"

namespace weir::wire {
namespace {

using Bytes = std::vector<std::byte>;

using test::packets_of;

class Golden : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Captures, Golden,
                         testing::Values("rc_basic.pcap", "rc_multi.pcap", "rc_rnr.pcap", "rc_nak_rkey.pcap",
                                         "rc_nak_len.pcap", "rc_mw.pcap", "rc_ipv6.pcap", "uc_pingpong.pcap",
                                         "ud_pingpong.pcap", "cm_rej.pcap", "cm_nolisten.pcap",
                                         "rc_loss_c2s.pcap", "rc_loss_s2c.pcap",
                                         "user_space_responder.pcap"));

TEST_P(Golden, packets_are_parsed_and_encoded_to_the_same_bytes) {
  const auto packets = packets_of(GetParam());
  ASSERT_FALSE(packets.empty());
  for (std::size_t i = 0; i < packets.size(); ++i) {
    SCOPED_TRACE(i);
    const auto frame = parse(packets[i]);
    ASSERT_TRUE(frame);
    EXPECT_EQ(encode(*frame), packets[i]);
  }
}

TEST_P(Golden, packets_with_a_changed_byte_that_the_icrc_covers_are_refused) {
  constexpr std::size_t bth_psn = 14 + 20 + 8 + 11;
  for (Bytes packet : packets_of(GetParam())) {
    packet[bth_psn] ^= std::byte{1};
    EXPECT_FALSE(parse(packet));
  }
}

TEST_P(Golden, packets_that_are_cut_off_are_refused) {
  const Bytes packet = packets_of(GetParam()).front();
  for (std::size_t length = 0; length < packet.size(); ++length)
    EXPECT_FALSE(parse(std::span(packet).first(length))) << length;
}

TEST(Roce, the_fields_of_a_write_are_where_soft_roce_has_them) {
  const auto packets = packets_of("rc_basic.pcap");
  std::size_t seen = 0;
  for (const Bytes& bytes : packets) {
    const auto frame = parse(bytes);
    ASSERT_TRUE(frame);
    if (frame->packet.bth.opcode != opcode(Service::rc, Operation::write_only)) continue;
    ++seen;
    const Packet& p = frame->packet;
    EXPECT_EQ(p.bth.destination, 0x11u);
    EXPECT_TRUE(p.bth.ack_request);
    EXPECT_EQ(p.bth.psn, 0x13cc10u);
    EXPECT_EQ(p.reth.addr, 0x55604f0c4100u);
    EXPECT_EQ(p.reth.rkey, 0x22bu);
    EXPECT_EQ(p.reth.length, 13u);
    EXPECT_EQ(p.payload.size(), 13u);
  }
  EXPECT_EQ(seen, 1u);
}

TEST_P(Golden, packets_are_encapsulated_as_they_came_but_for_the_udp_checksum) {
  constexpr std::size_t udp_checksum_behind_ip = 6, bth_behind_ip = 8;
  for (const Bytes& packet : packets_of(GetParam())) {
    const auto frame = parse(packet);
    ASSERT_TRUE(frame);
    const std::size_t udp_at = 14 + (std::holds_alternative<Ipv6>(frame->route.ip) ? 40 : 20);
    const std::span<const std::byte> all(packet);
    Bytes made = encapsulate(frame->route, all.subspan(udp_at + bth_behind_ip));
    const auto again = parse(made);
    ASSERT_TRUE(again);
    EXPECT_NE(again->route.udp_checksum, 0);
    for (std::size_t i = 0; i < 2; ++i)
      made[udp_at + udp_checksum_behind_ip + i] = packet[udp_at + udp_checksum_behind_ip + i];
    EXPECT_EQ(made, packet);
  }
}

// The ICRC of a datagram with known bytes, as the kernel computed it for Soft-RoCE's peer.
TEST(Roce, encapsulating_makes_the_checksum_that_the_kernel_makes) {
  std::size_t seen = 0;
  for (const Bytes& packet : packets_of("user_space_responder.pcap")) {
    const auto frame = parse(packet);
    ASSERT_TRUE(frame);
    if (frame->route.udp_checksum == 0) continue;
    ++seen;
    EXPECT_EQ(encapsulate(frame->route, std::span(packet).subspan(14 + 20 + 8)), packet);
  }
  EXPECT_NE(seen, 0u);
}

struct OpcodeRow {
  std::uint8_t opcode;
  std::optional<unsigned> extensions;
};

TEST(Opcodes, have_the_headers_of_the_specification) {
  using namespace extension;
  const OpcodeRow rows[] = {
      {0x00, payload},
      {0x01, payload},
      {0x02, payload},
      {0x03, imm | payload},
      {0x04, payload},
      {0x05, imm | payload},
      {0x06, reth | payload},
      {0x07, payload},
      {0x08, payload},
      {0x09, imm | payload},
      {0x0a, reth | payload},
      {0x0b, reth | imm | payload},
      {0x0c, reth},
      {0x0d, aeth | payload},
      {0x0e, payload},
      {0x0f, aeth | payload},
      {0x10, aeth | payload},
      {0x11, aeth},
      {0x12, aeth | atomic_ack_eth},
      {0x13, atomic_eth},
      {0x14, atomic_eth},
      {0x15, {}},
      {0x16, ieth | payload},
      {0x17, ieth | payload},
      {0x1d, reth | payload},
      {0x20, payload},
      {0x2c, {}},
      {0x31, {}},
      {0x64, deth | payload},
      {0x65, deth | imm | payload},
      {0x6a, {}},
      {0x81, reserved},
      {0x80, {}},
      {0x40, {}},
      {0xa4, xrceth | payload},
      {0xac, xrceth | reth},
      {0xb1, aeth},
      {0xb3, xrceth | atomic_eth},
      {0xe0, {}},
  };
  for (const OpcodeRow& row : rows) EXPECT_EQ(extensions_of(row.opcode), row.extensions) << int{row.opcode};
}

TEST(Roce, every_opcode_survives_the_way_there_and_back) {
  const std::string payload = "seven b";
  for (unsigned code = 0; code < 256; ++code) {
    const auto has = extensions_of(static_cast<std::uint8_t>(code));
    if (!has) continue;
    SCOPED_TRACE(code);
    Frame frame;
    frame.route.ip = Ipv6{};
    Packet& p = frame.packet;
    p.bth = {.opcode = static_cast<std::uint8_t>(code),
             .solicited = true,
             .ack_request = true,
             .destination = 0xabcdef,
             .psn = 0xfedcba};
    p.deth = {0x11223344, 0x556677};
    p.srqn = 0x8899aa;
    p.reth = {0x0102030405060708, 0x090a0b0c, 7};
    p.atomic = {0x1112131415161718, 0x191a1b1c, 0x2122232425262728, 0x3132333435363738};
    p.aeth = {nak | nak_remote_access, 0x414243};
    p.original = 0x5152535455565758;
    p.imm = 0x61626364;
    p.invalidate = 0x71727374;
    if (*has & extension::payload) p.payload = std::as_bytes(std::span(payload));
    const Bytes bytes = encode(frame);
    const auto back = parse(bytes);
    ASSERT_TRUE(back);
    EXPECT_EQ(encode(*back), bytes);
    EXPECT_EQ(back->packet.bth.psn, 0xfedcbau);
    EXPECT_EQ(back->packet.payload.size(), p.payload.size());
  }
}

std::uint32_t word(const Bytes& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

TEST(Pcapng, blocks_have_their_length_at_both_ends_and_follow_each_other) {
  Bytes file = pcapng_section("weir", "weir0");
  const Bytes packet(61, std::byte{7});
  append_pcapng_packet(file, 0x1122334455667788, packet, SIZE_MAX, "wr_id 1");
  append_pcapng_packet(file, 1, packet, 20);
  std::vector<std::uint32_t> types;
  std::size_t at = 0;
  while (at + 12 <= file.size()) {
    const std::uint32_t length = word(file, at + 4);
    ASSERT_EQ(length % 4, 0u);
    ASSERT_LE(at + length, file.size());
    EXPECT_EQ(word(file, at + length - 4), length);
    types.push_back(word(file, at));
    if (types.size() == 3) {
      EXPECT_EQ(word(file, at + 12), 0x11223344u);
      EXPECT_EQ(word(file, at + 16), 0x55667788u);
      EXPECT_EQ(word(file, at + 20), 61u);
      EXPECT_EQ(word(file, at + 24), 61u);
    }
    if (types.size() == 4) {
      EXPECT_EQ(word(file, at + 20), 20u) << "kept";
      EXPECT_EQ(word(file, at + 24), 61u) << "of";
    }
    at += length;
  }
  EXPECT_EQ(at, file.size());
  EXPECT_EQ(types, (std::vector<std::uint32_t>{0x0a0d0d0a, 1, 6, 6}));
}

}  // namespace
}  // namespace weir::wire
