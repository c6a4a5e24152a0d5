// The CRC in each implementation for this CPU, and the ICRC as made and checked behind a UDP socket.
#include "wire/icrc.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "captures.hpp"
#include "wire/crc32.hpp"
#include "wire/roce.hpp"

namespace weir::wire {
namespace {

using Bytes = std::vector<std::byte>;

std::uint32_t bit_by_bit(std::uint32_t crc, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return crc;
}

TEST(Crc32, has_the_check_value_of_its_catalogue) {
  const std::string check = "123456789";
  for (const Crc32Way& way : crc32_ways())
    EXPECT_EQ(~way.add(0xffffffff, std::as_bytes(std::span(check))), 0xcbf43926u) << way.name;
}

TEST(Crc32, is_the_same_in_every_way_for_every_length_and_alignment) {
  std::mt19937 random(1);
  Bytes bytes(5000);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random());
  for (const Crc32Way& way : crc32_ways()) {
    SCOPED_TRACE(way.name);
    for (std::size_t length = 0; length < 1100; ++length) {
      const auto part = std::span(bytes).subspan(length % 67, length);
      ASSERT_EQ(way.add(0x12345678, part), bit_by_bit(0x12345678, part)) << length;
    }
    EXPECT_EQ(way.add(~0u, bytes), bit_by_bit(~0u, bytes));
    EXPECT_EQ(way.add(way.add(~0u, std::span(bytes).first(333)), std::span(bytes).subspan(333)),
              bit_by_bit(~0u, bytes));
  }
}

// What a socket reports of a packet: source, destination and payload.
struct Received {
  IcrcRoute route;
  Bytes payload;
  std::uint16_t id = 0;  // which a socket does not tell
};

Received received(const Bytes& ethernet, const hash::SipKey* key = nullptr) {
  const auto frame = parse(ethernet);
  EXPECT_TRUE(frame);
  IcrcRoute::Ends ends{.source_port = frame->route.source_port, .destination_port = roce_port};
  std::uint16_t id = 0;
  std::size_t headers = 14 + 40 + 8;
  std::size_t length = 0;
  if (const auto* v4 = std::get_if<Ipv4>(&frame->route.ip)) {
    for (auto* address : {&ends.source, &ends.destination}) (*address)[10] = (*address)[11] = 0xff;
    std::ranges::copy(v4->source, ends.source.begin() + 12);
    std::ranges::copy(v4->destination, ends.destination.begin() + 12);
    id = v4->id;
    headers = 14 + 20 + 8;
    length =
        (std::to_integer<std::size_t>(ethernet[16]) << 8 | std::to_integer<std::size_t>(ethernet[17])) - 28;
  } else {
    const auto& v6 = std::get<Ipv6>(frame->route.ip);
    ends.source = v6.source;
    ends.destination = v6.destination;
    length =
        (std::to_integer<std::size_t>(ethernet[18]) << 8 | std::to_integer<std::size_t>(ethernet[19])) - 8;
  }
  const auto at = ethernet.begin() + static_cast<std::ptrdiff_t>(headers);
  return {IcrcRoute(ends, key), Bytes(at, at + static_cast<std::ptrdiff_t>(length)), id};
}

class Captured : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Captures, Captured,
                         testing::Values("rc_basic.pcap", "rc_multi.pcap", "rc_loss_c2s.pcap", "rc_ipv6.pcap",
                                         "user_space_responder.pcap"));

TEST_P(Captured, packets_are_sound_without_their_ip_header_and_tell_their_id) {
  for (const Bytes& ethernet : test::packets_of(GetParam())) {
    const Received packet = received(ethernet);
    EXPECT_EQ(packet.route.check(packet.payload), packet.id);
    EXPECT_EQ(packet.route.check(packet.payload, 0xbeef), packet.id);
    const auto covered = std::span(packet.payload).first(packet.payload.size() - icrc_bytes);
    EXPECT_TRUE(
        std::ranges::equal(packet.route.of(covered, packet.id), std::span(packet.payload).last(icrc_bytes)));
  }
}

TEST_P(Captured, packets_that_were_changed_are_refused_or_tell_an_id_that_is_not_believed) {
  std::mt19937 random(3);
  std::size_t tried = 0, taken = 0;
  SenderIds ids;
  for (int i = 0; i < 20; ++i) ids.believes(static_cast<std::uint16_t>(1000 + i));
  for (const Bytes& ethernet : test::packets_of(GetParam())) {
    Received packet = received(ethernet);
    for (int change = 0; change < 20; ++change) {
      Bytes bad = packet.payload;
      std::size_t at = 0;
      do {
        at = random() % bad.size();
      } while (at == 4);  // BECN and FECN: not covered
      bad[at] ^= static_cast<std::byte>(1 + random() % 255);
      const auto id = packet.route.check(bad);
      SenderIds probed = ids;
      ++tried;
      if (id && probed.believes(*id) && packet.route.is_ipv4()) ++taken;
      EXPECT_TRUE(!id || packet.route.is_ipv4());
    }
  }
  EXPECT_GT(tried, 100u);
  EXPECT_EQ(taken, 0u);
}

constexpr hash::SipKey a_key{1, 2}, other_key{1, 3};

void seal(Bytes& payload, const IcrcRoute& route, std::uint16_t id = 0) {
  const auto covered = std::span(payload).first(payload.size() - icrc_bytes);
  std::ranges::copy(route.of(covered, id), payload.end() - icrc_bytes);
}

struct ChangeRow {
  const char* name;
  bool taken;
  void (*change)(Bytes&);
};
const ChangeRow changes[] = {
    {"nothing", true, [](Bytes&) {}},
    {"what switches mark", true, [](Bytes& packet) { packet[4] ^= std::byte{0xc0}; }},
    {"the opcode", false, [](Bytes& packet) { packet[0] ^= std::byte{1}; }},
    {"the solicited bit", false, [](Bytes& packet) { packet[1] ^= std::byte{0x80}; }},
    {"the queue pair", false, [](Bytes& packet) { packet[7] ^= std::byte{1}; }},
    {"the PSN", false, [](Bytes& packet) { packet[11] ^= std::byte{1}; }},
    {"the last byte that it covers", false,
     [](Bytes& packet) { *(packet.end() - icrc_bytes - 1) ^= std::byte{1}; }},
    {"the check", false, [](Bytes& packet) { packet.back() ^= std::byte{0x80}; }},
    {"the length", false, [](Bytes& packet) { packet.insert(packet.end() - icrc_bytes, 4, std::byte{}); }},
    {"all but the BTH", false, [](Bytes& packet) { packet.resize(12); }},
    {"all but four bytes", false, [](Bytes& packet) { packet.resize(4); }},
};

TEST_P(Captured, packets_with_a_keyed_check_are_taken_only_unchanged) {
  for (const Bytes& ethernet : test::packets_of(GetParam())) {
    Received packet = received(ethernet, &a_key);
    seal(packet.payload, packet.route);
    for (const ChangeRow& row : changes) {
      SCOPED_TRACE(row.name);
      Bytes changed = packet.payload;
      row.change(changed);
      EXPECT_EQ(packet.route.check(changed).has_value(), row.taken);
    }
  }
}

TEST_P(Captured, packets_with_a_keyed_check_are_taken_only_with_that_key) {
  const hash::SipKey* const keys[] = {nullptr, &a_key, &other_key};
  for (const Bytes& ethernet : test::packets_of(GetParam()))
    for (const auto* sender : keys)
      for (const auto* receiver : keys) {
        Received packet = received(ethernet, sender);
        seal(packet.payload, packet.route, packet.id);
        const Received there = received(ethernet, receiver);
        const bool taken = there.route.check(packet.payload, packet.id) == packet.id;
        EXPECT_EQ(taken, sender == receiver);
      }
}

TEST(IcrcRoute, with_a_key_covers_addresses_and_ports) {
  IcrcRoute::Ends ends{.source_port = 5, .destination_port = 6};
  ends.source[15] = 1;
  ends.destination[15] = 2;
  Bytes packet(40);
  seal(packet, IcrcRoute(ends, &a_key));
  struct Row {
    const char* name;
    void (*change)(IcrcRoute::Ends&);
  };
  const Row rows[] = {
      {"another source", [](IcrcRoute::Ends& to) { to.source[0] ^= 1; }},
      {"another destination", [](IcrcRoute::Ends& to) { to.destination[15] ^= 1; }},
      {"sent back", [](IcrcRoute::Ends& to) { std::swap(to.source, to.destination); }},
      {"another port", [](IcrcRoute::Ends& to) { to.source_port ^= 1; }},
      {"ports swapped", [](IcrcRoute::Ends& to) { std::swap(to.source_port, to.destination_port); }},
  };
  EXPECT_TRUE(IcrcRoute(ends, &a_key).check(packet));
  for (const Row& row : rows) {
    IcrcRoute::Ends changed = ends;
    row.change(changed);
    EXPECT_FALSE(IcrcRoute(changed, &a_key).check(packet)) << row.name;
  }
}

struct IdRow {
  const char* name;
  std::vector<std::uint16_t> ids;
  std::size_t refused;
};

TEST(SenderIds, know_how_senders_number_their_packets) {
  const auto counting = [](std::uint16_t from, std::uint16_t step) {
    std::vector<std::uint16_t> ids(100);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint16_t>(from + i * step);
    return ids;
  };
  std::vector<std::uint16_t> batches, jump = counting(30'000, 1), random(1000), wraps = counting(65'500, 3);
  for (std::uint16_t i = 0; i < 100; ++i) batches.push_back(i % 19);
  const auto more = counting(9'000, 2);
  jump.insert(jump.end(), more.begin(), more.end());
  std::mt19937 generator(5);
  for (auto& id : random) id = static_cast<std::uint16_t>(generator());
  const IdRow rows[] = {{"always 0", std::vector<std::uint16_t>(50, 0), 0},
                        {"counting", counting(40'000, 8), 0},
                        {"wrapping", wraps, 0},
                        {"of batches", batches, 0},
                        {"begun anew", jump, 1}};
  for (const IdRow& row : rows) {
    SCOPED_TRACE(row.name);
    SenderIds ids;
    std::size_t refused = 0;
    for (const std::uint16_t id : row.ids) refused += !ids.believes(id);
    EXPECT_EQ(refused, row.refused);
  }
  SenderIds ids;
  std::size_t refused = 0;
  for (const std::uint16_t id : random) refused += !ids.believes(id);
  EXPECT_LT(refused, 5u) << "a sender with random IDs is believed without them";
}

}  // namespace
}  // namespace weir::wire
