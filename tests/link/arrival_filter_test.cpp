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
