// The kernel's filter in front of a socket: what it lets through, tried on loopback with addresses that are
// not loopback's.
#include "link/udp/arrival_filter.hpp"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "link/udp/socket_address.hpp"
#include "link/unique_fd.hpp"
#include "own_network.hpp"
#include "wire/mad.hpp"

namespace weir::link {
namespace {

constexpr unsigned slot_shift = 14;
constexpr Slot own = 7, other = 9;
constexpr std::uint32_t queue_pair_of(Slot slot) { return std::uint32_t{slot} << slot_shift | 3; }
constexpr std::size_t management_bytes = 12 + 8 + wire::mad_bytes + 4;

constexpr IpAddress address(std::uint8_t last) {
  IpAddress ip = v4_elsewhere;
  ip[15] = last;
  return ip;
}
constexpr IpAddress peer = address(77), stranger = address(78);

class ArrivalFilter : public testing::Test {
 protected:
  void SetUp() override {
    if (!own_network()) GTEST_SKIP() << "the kernel lets this user make no network namespace";
    receiver_ = open(v4_elsewhere);
    socklen_t bytes = sizeof at_;
    ASSERT_EQ(::getsockname(receiver_.get(), reinterpret_cast<sockaddr*>(&at_), &bytes), 0);
  }

  // Of both families, as the port's socket is.
  static UniqueFd open(const IpAddress& ip) {
    UniqueFd socket(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const SocketAddress from(true, ip, 0);
    EXPECT_EQ(::bind(socket.get(), from.get(), from.bytes), 0);
    return socket;
  }
  void attach(const ArrivalRules& rules) {
    auto code = arrival_filter(rules);
    sock_fprog program{};
    program.len = static_cast<unsigned short>(code.size());
    program.filter = code.data();
    ASSERT_EQ(::setsockopt(receiver_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
  }
  // How many of them come.
  int send(const IpAddress& from, std::uint32_t queue_pair, std::size_t bytes = 60, int times = 1) {
    const UniqueFd socket = open(from);
    std::vector<std::byte> packet(bytes);
    for (std::size_t i = 0; i < 3 && 5 + i < bytes; ++i)
      packet[5 + i] = std::byte(queue_pair >> (16 - 8 * i));
    int came = 0;
    for (int i = 0; i < times; ++i) {
      EXPECT_EQ(::sendto(socket.get(), packet.data(), packet.size(), 0,
                         reinterpret_cast<const sockaddr*>(&at_), sizeof at_),
                static_cast<ssize_t>(bytes));
      std::byte room[2048];
      if (::recv(receiver_.get(), room, sizeof room, 0) >= 0) ++came;
    }
    return came;
  }

  UniqueFd receiver_;
  sockaddr_in6 at_{};
};

TEST_F(ArrivalFilter, admits_peers_and_management_only) {
  const std::vector<IpAddress> peers = {address(3), peer, address(200)};
  const std::vector<Slot> others = {other};
  attach({.own = own, .slot_shift = slot_shift, .others = others, .peers = peers});
  struct Row {
    const char* what;
    IpAddress from;
    std::uint32_t queue_pair;
    std::size_t bytes;
    int comes;
  };
  for (const Row& row :
       {Row{"a peer's", peer, queue_pair_of(own), 60, 1},
        Row{"the first peer's", address(3), queue_pair_of(own), 60, 1},
        Row{"the last peer's", address(200), queue_pair_of(own), 60, 1},
        Row{"a stranger's", stranger, queue_pair_of(own), 60, 0},
        Row{"a peer's, cut", peer, queue_pair_of(own), 15, 0},
        Row{"for another process", stranger, queue_pair_of(other), 60, 1}, Row{"for nobody", peer, 0, 60, 0},
        Row{"for a group", stranger, 0xffffff, 60, 1}, Row{"a request", stranger, 1, management_bytes, 1},
        Row{"a cut request", peer, 1, management_bytes - 1, 0}})
    EXPECT_EQ(send(row.from, row.queue_pair, row.bytes), row.comes) << row.what;
}

TEST_F(ArrivalFilter, admits_datagrams_from_anywhere_if_any_are_taken) {
  attach({.own = own, .slot_shift = slot_shift, .datagrams = true});
  EXPECT_EQ(send(stranger, queue_pair_of(own)), 1);
}

TEST_F(ArrivalFilter, turns_everybody_away_without_peers) {
  attach({.own = own, .slot_shift = slot_shift});
  EXPECT_EQ(send(peer, queue_pair_of(own)), 0);
}

TEST_F(ArrivalFilter, samples_packets_to_unknown_processes) {
  constexpr int sent = 1'600;  // a hundred come on average; beyond these bounds not once in 10^12 runs
  attach({.own = own, .slot_shift = slot_shift});
  const int came = send(stranger, queue_pair_of(other), 60, sent);
  EXPECT_GT(came, 30);
  EXPECT_LT(came, 180);
}

TEST_F(ArrivalFilter, admits_what_this_host_sends_to_unknown_processes) {
  constexpr int sent = 100;
  attach({.own = own, .slot_shift = slot_shift, .loopback = ::if_nametoindex("lo")});
  EXPECT_EQ(send(stranger, queue_pair_of(other), 60, sent), sent);
  EXPECT_EQ(send(stranger, queue_pair_of(own)), 0);
}

TEST_F(ArrivalFilter, admits_everybody_beyond_its_number_of_peers) {
  std::vector<IpAddress> peers;
  for (std::size_t i = 0; i <= max_filtered_peers; ++i)
    peers.push_back(address(static_cast<std::uint8_t>(100 + i % 100)));
  attach({.own = own, .slot_shift = slot_shift, .peers = peers});
  EXPECT_EQ(send(stranger, queue_pair_of(own)), 1);
}

TEST_F(ArrivalFilter, cuts_requests_of_strangers_that_send_too_many) {
  constexpr int sent = 1'600;
  constexpr std::uint32_t salt = 0x9e3779b1;
  const std::vector<IpAddress> peers = {peer};
  for (const IpAddress& at : {v4_elsewhere, v6_loopback}) {
    receiver_ = open(at);
    socklen_t bytes = sizeof at_;
    ASSERT_EQ(::getsockname(receiver_.get(), reinterpret_cast<sockaddr*>(&at_), &bytes), 0);
    const IpAddress from = is_v4(at) ? stranger : v6_loopback;
    const std::uint64_t bucket = std::uint64_t{1} << cut_bucket_of(from, salt);
    const auto cut = [&](std::uint64_t buckets) {
      attach({.own = own, .slot_shift = slot_shift, .peers = peers, .cut = {salt, buckets, 4}});
      return send(from, 1, management_bytes, sent);
    };
    for (const std::uint64_t buckets : {bucket, ~std::uint64_t{0}}) {
      const int came = cut(buckets);
      EXPECT_GT(came, 30);
      EXPECT_LT(came, 180);
    }
    EXPECT_EQ(cut(~bucket), sent) << "another network's flood";
  }
}

TEST_F(ArrivalFilter, cuts_no_requests_of_peers) {
  const std::vector<IpAddress> peers = {address(3), peer};
  attach({.own = own, .slot_shift = slot_shift, .peers = peers, .cut = {1, ~std::uint64_t{0}, 10}});
  EXPECT_EQ(send(peer, 1, management_bytes, 500), 500);
}

class Cut : public testing::Test {
 protected:
  static constexpr IpAddress network(std::uint32_t number) {
    return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, std::uint8_t(number >> 8), std::uint8_t(number), 1};
  }
  void offer(std::uint64_t count, std::uint32_t networks, std::uint32_t first = 0) {
    for (std::uint64_t i = 0; i < count; ++i)
      cut.count(network(first + static_cast<std::uint32_t>(i % networks)));
  }
  std::uint64_t bit(std::uint32_t number) const {
    return std::uint64_t{1} << cut_bucket_of(network(number), cut.now().salt);
  }
  StrangerCut cut{0x9e3779b1};
};

TEST_F(Cut, leaves_alone_what_is_not_too_much) {
  offer(StrangerCut::of_bucket, 1);
  offer(StrangerCut::of_all - StrangerCut::of_bucket, 100, 1);
  EXPECT_EQ(cut.end_window().buckets, 0u);
}

TEST_F(Cut, cuts_the_network_that_sends_too_much) {
  offer(10 * StrangerCut::of_bucket, 1);
  offer(100, 1, 1);
  const CutSources now = cut.end_window();
  EXPECT_EQ(now.buckets, bit(0));
  EXPECT_GE(now.halvings, 3u);
}

TEST_F(Cut, cuts_all_under_forged_sources) {
  offer(20'000, 60'000);
  const CutSources now = cut.end_window();
  EXPECT_EQ(now.buckets, ~std::uint64_t{0});
  EXPECT_LE(20'000u >> now.halvings, StrangerCut::of_all);
  EXPECT_GT(20'000u >> (now.halvings - 1), StrangerCut::of_all / 2) << "and no less than needed";
}

TEST_F(Cut, stays_while_as_much_is_offered_and_then_ends) {
  offer(16 * StrangerCut::of_all, 60'000);
  const CutSources first = cut.end_window();
  EXPECT_GE(first.halvings, 4u);
  for (int window = 0; window < 20; ++window) {
    offer(16 * StrangerCut::of_all >> first.halvings, 60'000);
    EXPECT_EQ(cut.end_window(), first) << window;
  }
  EXPECT_EQ(cut.end_window().buckets, 0u);
}

TEST_F(ArrivalFilter, tells_peers_of_ipv6_from_strangers) {
  receiver_ = open(v6_loopback);
  socklen_t bytes = sizeof at_;
  ASSERT_EQ(::getsockname(receiver_.get(), reinterpret_cast<sockaddr*>(&at_), &bytes), 0);
  IpAddress elsewhere = v6_loopback;
  elsewhere[0] = 0x20;
  for (const auto& [peer_address, comes] : {std::pair{v6_loopback, 1}, {elsewhere, 0}}) {
    const std::vector<IpAddress> peers = {peer_address};
    attach({.own = own, .slot_shift = slot_shift, .peers = peers});
    EXPECT_EQ(send(v6_loopback, queue_pair_of(own)), comes);
  }
}

}  // namespace
}  // namespace weir::link
