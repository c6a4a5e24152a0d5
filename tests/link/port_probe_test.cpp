// A probe on loopback, in a network namespace of its own.
#include "link/udp/port_probe.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>

#include "own_network.hpp"
#include "wire/roce.hpp"

namespace weir::link {
namespace {

struct Way {
  const char* name;
  IpAddress source, destination;
};

class Probe : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!own_network()) GTEST_SKIP() << "the kernel lets this user make no network namespace";
    probe = PortProbe::open({.source = GetParam().source, .destination = GetParam().destination});
    ASSERT_NE(probe, nullptr);
  }
  // Loopback answers before send() returns.
  bool says_something() const {
    pollfd waited{probe->descriptor(), POLLIN, 0};
    return ::poll(&waited, 1, 0) == 1;
  }

  static constexpr std::array<std::byte, 5> datagram = {std::byte{1}, std::byte{2}, std::byte{3},
                                                        std::byte{4}, std::byte{5}};
  std::unique_ptr<PortProbe> probe;
};

INSTANTIATE_TEST_SUITE_P(Both, Probe,
                         testing::Values(Way{"ipv4", v4_loopback(1), v4_loopback(2)},
                                         Way{"ipv6", v6_loopback, v6_loopback}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_P(Probe, hears_that_nobody_has_the_port) {
  ASSERT_TRUE(probe->send(wire::roce_port, datagram));
  EXPECT_TRUE(says_something());
  EXPECT_TRUE(probe->refused());
}

TEST_P(Probe, arrives_from_its_source_port_and_hears_nothing_from_who_has_it) {
  const auto there = UdpPort::open(wire::roce_port);
  ASSERT_TRUE(there) << there.error().what;
  ASSERT_TRUE(probe->send(wire::roce_port, datagram));
  EXPECT_FALSE(says_something());
  EXPECT_FALSE(probe->refused());
  int came = 0;
  (*there)->receive([&](std::span<const UdpArrival> arrivals) {
    for (const UdpArrival& each : arrivals) {
      ++came;
      EXPECT_TRUE(std::ranges::equal(each.payload, datagram));
      EXPECT_EQ(each.source, GetParam().source);
      EXPECT_EQ(each.source_port, probe->source_port());
    }
  });
  EXPECT_EQ(came, 1);
}

TEST_P(Probe, from_an_address_of_another_host_cannot_be_opened) {
  IpAddress foreign = GetParam().source;
  foreign[0] = foreign[0] == 0 && foreign[10] == 0xff ? 0 : 0x20;
  foreign[12] = 8;
  EXPECT_EQ(PortProbe::open({.source = foreign, .destination = GetParam().destination}), nullptr);
}

}  // namespace
}  // namespace weir::link
