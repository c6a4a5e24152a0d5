// The UDP port on loopback, in a network namespace of its own: the port number is fixed, and other
// processes of this host may have it.
#include "link/udp/udp_port.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <vector>

#include "own_network.hpp"
#include "wire/icrc.hpp"
#include "wire/roce.hpp"

namespace weir::link {
namespace {

struct Came {
  std::vector<std::byte> bytes;
  UdpArrival arrival;
};

std::vector<std::byte> numbered(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

struct Way {
  const char* name;
  IpAddress source, destination;
};

class OnLoopback : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!own_network()) GTEST_SKIP() << "the kernel lets this user make no network namespace";
    auto opened = UdpPort::open(wire::roce_port);
    ASSERT_TRUE(opened) << opened.error().what;
    port_ = std::move(*opened);
  }
  UdpRoute route() const { return {.source = GetParam().source, .destination = GetParam().destination}; }
  // What the socket has when something has come.
  std::vector<Came> received() { return received_by(*port_); }
  static std::vector<Came> received_by(UdpPort& port) {
    constexpr int patience_ms = 10'000;
    pollfd waited{port.descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&waited, 1, patience_ms), 1);
    std::vector<Came> all;
    port.receive([&](std::span<const UdpArrival> arrivals) {
      for (const UdpArrival& arrival : arrivals)
        all.push_back({{arrival.payload.begin(), arrival.payload.end()}, arrival});
    });
    return all;
  }

  std::unique_ptr<UdpPort> port_;
};

INSTANTIATE_TEST_SUITE_P(Ways, OnLoopback,
                         testing::Values(Way{"ipv4", v4_loopback(1), v4_loopback(2)},
                                         Way{"ipv6", v6_loopback, v6_loopback}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(OnLoopback, a_datagram_says_where_it_came_from_and_how) {
  const auto sent = numbered(100);
  UdpRoute to = route();
  to.traffic_class = 0x68;
  to.hop_limit = 9;
  const UdpRun run{sent, 100};
  ASSERT_EQ(port_->send(to, {&run, 1}), 0);
  const auto came = received();
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].bytes, sent);
  EXPECT_EQ(came[0].arrival.source, to.source);
  EXPECT_EQ(came[0].arrival.destination, to.destination);
  EXPECT_EQ(came[0].arrival.source_port, wire::roce_port);
  EXPECT_EQ(came[0].arrival.traffic_class, 0x68);
  EXPECT_EQ(came[0].arrival.hop_limit, 9);
}

TEST_P(OnLoopback, a_run_arrives_as_the_datagrams_that_it_is_made_of) {
  ASSERT_TRUE(port_->cuts_runs());
  const auto sent = numbered(10 * 512 + 100);
  const UdpRun run{sent, 512};
  ASSERT_EQ(port_->send(route(), {&run, 1}), 0);
  std::vector<std::byte> all;
  for (std::uint16_t place = 0; const Came& came : received()) {
    EXPECT_EQ(came.arrival.index, place++);
    EXPECT_EQ(came.bytes.size(), std::min<std::size_t>(512, sent.size() - all.size()));
    all.insert(all.end(), came.bytes.begin(), came.bytes.end());
  }
  EXPECT_EQ(all, sent);
}

TEST_P(OnLoopback, runs_of_any_number_arrive_in_order) {
  constexpr std::size_t count = 40;  // more than leave in one call
  std::vector<std::vector<std::byte>> sent;
  std::vector<UdpRun> runs;
  for (std::size_t i = 0; i < count; ++i) sent.push_back(numbered(100 + 90 * (i % 3) + i));
  for (const auto& bytes : sent) runs.push_back({bytes, 100});
  std::array<bool, count> went{};
  ASSERT_EQ(port_->send(route(), runs, went), 0);
  EXPECT_TRUE(std::ranges::all_of(went, std::identity()));
  std::vector<std::byte> wanted, all;
  for (const auto& bytes : sent) wanted.insert(wanted.end(), bytes.begin(), bytes.end());
  while (all.size() < wanted.size()) {
    const auto came = received();
    ASSERT_FALSE(came.empty());
    for (const Came& each : came) all.insert(all.end(), each.bytes.begin(), each.bytes.end());
  }
  EXPECT_EQ(all, wanted);
}

TEST_P(OnLoopback, a_run_that_is_refused_is_the_last_that_is_tried) {
  const auto good = numbered(100), too_long = numbered(70'000);
  const std::array<UdpRun, 4> runs = {
      {{good, 100}, {good, 100}, {too_long, std::uint16_t{60'000}}, {good, 100}}};
  std::array<bool, 4> went{};
  EXPECT_EQ(port_->send(route(), runs, went), EMSGSIZE);
  EXPECT_EQ(went, (std::array<bool, 4>{true, true, false, false}));
}

// The ICRC covers the addresses and IPv4's ID, which a sender cannot see: the kernel sends what was assumed.
TEST_P(OnLoopback, the_kernel_numbers_packets_as_their_icrc_says) {
  const wire::IcrcRoute icrc({.source = route().source,
                              .destination = route().destination,
                              .source_port = wire::roce_port,
                              .destination_port = wire::roce_port});
  constexpr std::size_t packets = 5, bytes = 64;
  auto sent = numbered(packets * bytes);
  for (std::uint16_t i = 0; i < packets; ++i) {
    const auto packet = std::span(sent).subspan(i * bytes, bytes);
    std::ranges::copy(icrc.of(packet.first(bytes - wire::icrc_bytes), i),
                      packet.last(wire::icrc_bytes).begin());
  }
  const UdpRun run{sent, bytes};
  ASSERT_EQ(port_->send(route(), {&run, 1}), 0);
  const auto came = received();
  ASSERT_EQ(came.size(), packets);
  for (std::uint16_t i = 0; i < packets; ++i)
    EXPECT_EQ(icrc.check(came[i].bytes, i), icrc.is_ipv4() ? i : 0) << i;
}

TEST_P(OnLoopback, where_the_kernel_cuts_no_runs_none_are_made_any_more) {
  // More segments than the kernel ever takes stand for a device that cuts none up: the same answer.
  const auto sent = numbered(2000);
  const UdpRun refused{sent, 1};
  EXPECT_EQ(port_->send(route(), {&refused, 1}), EINVAL);
  EXPECT_FALSE(port_->cuts_runs());
  const UdpRun alone{std::span(sent).first(300), 300};
  ASSERT_EQ(port_->send(route(), {&alone, 1}), 0);
  const auto came = received();
  ASSERT_EQ(came.size(), 1u);
  EXPECT_EQ(came[0].bytes.size(), 300u);
}

TEST_P(OnLoopback, processes_of_one_user_share_the_port) {
  auto second = UdpPort::open(wire::roce_port);
  EXPECT_TRUE(second) << second.error().what;
}

TEST_P(OnLoopback, a_port_that_turns_arrivals_away_keeps_what_it_has_and_leaves_the_rest_to_others) {
  auto opened = UdpPort::open(wire::roce_port);
  ASSERT_TRUE(opened);
  UdpPort* leaving = port_.get();
  UdpPort* staying = opened->get();
  const auto bytes = numbered(200);
  const UdpRun before{std::span(bytes).first(100), 100}, after{bytes, 200};
  ASSERT_EQ(port_->send(route(), {&before, 1}), 0);
  std::array<pollfd, 2> waited = {{{leaving->descriptor(), POLLIN, 0}, {staying->descriptor(), POLLIN, 0}}};
  constexpr int patience_ms = 10'000;
  ASSERT_EQ(::poll(waited.data(), waited.size(), patience_ms), 1);
  if (waited[1].revents != 0) std::swap(leaving, staying);

  leaving->turn_arrivals_away();
  ASSERT_EQ(staying->send(route(), {&after, 1}), 0);  // to where the first one went, otherwise
  const auto later = received_by(*staying), earlier = received_by(*leaving);
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].bytes.size(), 200u);
  ASSERT_EQ(earlier.size(), 1u);
  EXPECT_EQ(earlier[0].bytes.size(), 100u);
}

// Loopback gives back what is sent, so that it stands for the network; the kernel sends no group of IPv6
// there.
class Groups : public OnLoopback {};
INSTANTIATE_TEST_SUITE_P(Ways, Groups, testing::Values(Way{"ipv4", v4_loopback(1), v4_loopback(2)}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_P(Groups, what_goes_to_a_group_comes_to_each_port_that_joined_it_and_to_no_other) {
  const std::uint32_t lo = ::if_nametoindex("lo");
  constexpr IpAddress group = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
  auto member = UdpPort::open(wire::roce_port), outside = UdpPort::open(wire::roce_port);
  ASSERT_TRUE(member && outside);
  ASSERT_EQ(port_->join(group, lo), 0);
  EXPECT_EQ(port_->join(group, lo), EADDRINUSE);
  ASSERT_EQ((*member)->join(group, lo), 0);
  const UdpRoute to{.source = v4_elsewhere, .destination = group, .hop_limit = 1, .interface = lo};
  const auto send = [&](const std::vector<std::byte>& bytes) {
    const UdpRun run{bytes, 64};
    ASSERT_EQ((*outside)->send(to, {&run, 1}), 0);
  };
  const auto sent = numbered(5 * 64);
  send(sent);
  for (UdpPort* const each : {port_.get(), member->get()}) {
    std::vector<std::byte> all;
    std::uint16_t place = 0;
    for (const Came& came : received_by(*each)) {
      EXPECT_EQ(came.arrival.destination, group);
      EXPECT_EQ(came.arrival.source, to.source);
      EXPECT_EQ(came.arrival.index, place++);
      all.insert(all.end(), came.bytes.begin(), came.bytes.end());
    }
    EXPECT_EQ(all, sent) << "once, although the sender is of this host";
  }
  ASSERT_EQ(port_->leave(group, lo), 0);
  EXPECT_EQ(port_->leave(group, lo), EADDRNOTAVAIL);
  send(numbered(64));
  EXPECT_EQ(received_by(**member).size(), 1u);
  for (UdpPort* const each : {port_.get(), outside->get()}) {
    pollfd now{each->descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&now, 1, 0), 0) << "what the member has, everybody would have by now";
  }
}

TEST_P(Groups, that_the_kernel_refuses_are_errors) {
  EXPECT_EQ(port_->join({0xff, 0x12}, 4711), ENODEV) << "no such interface";
  const std::uint32_t lo = ::if_nametoindex("lo");
  IpAddress group{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 0, 0};
  int error = 0;
  std::size_t joined = 0;
  for (; error == 0 && joined < 5000; ++joined) {
    group[14] = static_cast<std::uint8_t>(joined >> 8);
    group[15] = static_cast<std::uint8_t>(joined);
    error = port_->join(group, lo);
  }
  EXPECT_TRUE(error == ENOBUFS || error == ENOMEM) << joined << " groups: " << std::strerror(error);
  EXPECT_GT(joined, 1u);
  --group[15];
  EXPECT_EQ(port_->leave(group, lo), 0) << "the others stay";
}

TEST_P(OnLoopback, an_address_that_is_not_ours_has_no_way) {
  UdpRoute to = route();
  EXPECT_EQ(UdpPort::way_to(to), 0);
  to.source = GetParam().source == v6_loopback
                  ? IpAddress{0xfd, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9}
                  : IpAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
  EXPECT_EQ(UdpPort::way_to(to), EADDRNOTAVAIL);
  to.source = GetParam().source == v6_loopback ? v4_loopback(1) : v6_loopback;
  EXPECT_EQ(UdpPort::way_to(to), EAFNOSUPPORT) << "the ends are of two families";
}

TEST(UdpPortOfAnother, is_refused_and_its_user_named) {
  if (!own_network()) GTEST_SKIP() << "the kernel lets this user make no network namespace";
  const UniqueFd taken(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  any.sin6_port = htons(wire::roce_port);
  // Without SO_REUSEPORT, as the kernel's Soft-RoCE has it.
  ASSERT_EQ(::bind(taken.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0)
      << std::strerror(errno);
  const auto refused = UdpPort::open(wire::roce_port);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, std::errc::address_in_use);
  EXPECT_NE(refused.error().what.find("rdma_rxe"), std::string::npos) << refused.error().what;
}

}  // namespace
}  // namespace weir::link
