// What faults do to packets on their way through the device in front of the NIC's own.
#include "verbs/nic/faulty_device.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <future>

#include "faults/language.hpp"
#include "tests/scratch_directory.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint32_t qpn = 0x8002;
constexpr rnic::Gid source{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 1},
    destination{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 0, 2};

// The device behind: keeps what leaves, and hands over what the test lets arrive.
class Wire final : public PacketDevice {
 public:
  void send(const rnic::PacketRoute&, std::span<const rnic::PacketRun> runs) override {
    for (const rnic::PacketRun& run : runs) left.emplace_back(run.bytes.begin(), run.bytes.end());
  }
  std::size_t packets_in_run(const rnic::PacketRoute&) const override { return 1; }
  void receive(const rnic::HostPort::PacketSink& sink) override { sink({&arriving, 1}); }

  std::vector<Bytes> left;
  rnic::PacketDatagram arriving;
};

wire::IcrcRoute icrc_with(const hash::SipKey* key) {
  return wire::IcrcRoute({.source = source,
                          .destination = destination,
                          .source_port = wire::roce_port,
                          .destination_port = wire::roce_port},
                         key);
}

// A SEND of eight bytes to the other end, with its ICRC.
Bytes packet_of(std::uint32_t psn, const hash::SipKey* key = nullptr) {
  wire::Packet packet;
  packet.bth = {
      .opcode = wire::opcode(wire::Service::rc, wire::Operation::send_only), .destination = qpn, .psn = psn};
  constexpr std::size_t payload = 8;
  std::array<std::byte, wire::longest_headers> headers{};
  const std::size_t used = wire::encode_headers(packet, payload, headers);
  Bytes bytes(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(used));
  bytes.resize(used + payload, std::byte{0x5a});
  const auto sum = icrc_with(key).of(bytes);
  bytes.insert(bytes.end(), sum.begin(), sum.end());
  return bytes;
}

unsigned bits_that_differ(const Bytes& one, const Bytes& other, std::size_t from, std::size_t to) {
  unsigned bits = 0;
  for (std::size_t i = from; i < to; ++i) bits += std::popcount(std::to_integer<unsigned>(one[i] ^ other[i]));
  return bits;
}

class FaultyDeviceTest : public testing::Test {
 protected:
  FaultyDevice& make(std::string_view faults, const hash::SipKey* key = nullptr) {
    link = std::move(*link::SameHostLink::attach({.directory = scratch.path()}));
    device = std::make_unique<FaultyDevice>(
        faults::read_plan(faults).value(), wire, *link, [](const rnic::PacketDatagram&) {},
        [](std::uint32_t, std::uint32_t) {}, [this](std::chrono::microseconds wait) { waited += wait; }, key);
    device->queue_pair_made(qpn);
    return *device;
  }
  ~FaultyDeviceTest() override { link.reset(); }
  void send(const Bytes& bytes) {
    const rnic::PacketRun run{bytes, static_cast<std::uint16_t>(bytes.size())};
    rnic::PacketRoute route;
    route.source = source;
    route.destination = destination;
    route.from = rnic::Qpn(qpn);
    device->send(route, {&run, 1});
  }
  Bytes arrives(const Bytes& bytes) {
    wire.arriving = {.bytes = bytes, .source = source, .destination = destination};
    wire.arriving.source_port = wire::roce_port;
    Bytes arrived;
    device->receive([&](std::span<const rnic::PacketDatagram> datagrams) {
      for (const auto& each : datagrams) arrived.assign(each.bytes.begin(), each.bytes.end());
    });
    return arrived;
  }

  weir::test::ScratchDirectory scratch;
  Wire wire;
  std::chrono::microseconds waited{};
  std::unique_ptr<link::SameHostLink> link;
  std::unique_ptr<FaultyDevice> device;
};

constexpr std::size_t payload_begins = 12, payload_ends = 20;

TEST_F(FaultyDeviceTest, altered_payload_has_a_right_icrc_both_ways) {
  const hash::SipKey key{1, 2};
  for (const hash::SipKey* const one : {static_cast<const hash::SipKey*>(nullptr), &key}) {
    make("alter", one);
    const Bytes before = packet_of(7, one);
    send(before);
    ASSERT_EQ(wire.left.size(), 1u);
    for (const Bytes& after : {wire.left.front(), arrives(before)}) {
      ASSERT_EQ(after.size(), before.size());
      EXPECT_EQ(bits_that_differ(before, after, payload_begins, payload_ends), 1u);
      EXPECT_EQ(bits_that_differ(before, after, 0, payload_begins), 0u);
      EXPECT_TRUE(icrc_with(one).check(after));
    }
    wire.left.clear();
    link.reset();
  }
}

TEST_F(FaultyDeviceTest, corrupted_packet_has_a_wrong_icrc) {
  const hash::SipKey key{1, 2};  // without one, an IPv4 packet's ID hides one bit from check()
  make("corrupt", &key);
  send(packet_of(7, &key));
  ASSERT_EQ(wire.left.size(), 1u);
  EXPECT_FALSE(icrc_with(&key).check(wire.left.front()));
}

TEST_F(FaultyDeviceTest, paused_packets_leave_in_order_when_the_pause_ends) {
  make("pause from=0s until=20ms");
  std::promise<void> over;
  device->schedule([](std::size_t) {},
                   [&](std::size_t) {
                     device->resume();
                     over.set_value();
                   });
  for (const std::uint32_t psn : {1, 2, 3}) send(packet_of(psn));
  over.get_future().wait();
  send(packet_of(4));
  ASSERT_EQ(wire.left.size(), 4u);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(wire.left[i], packet_of(i + 1));
}

TEST_F(FaultyDeviceTest, pause_without_end_holds_packets_until_the_program_ends) {
  make("pause from=0s");
  send(packet_of(1));
  device->resume();
  EXPECT_TRUE(wire.left.empty());
  EXPECT_EQ(waited.count(), 0);
  device->finish();
  EXPECT_EQ(wire.left.size(), 1u);
}

}  // namespace
}  // namespace weir::verbs
