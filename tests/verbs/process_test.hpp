// A connection with the test at one end and a peer program at the other.
#pragma once

#include <optional>

#include "peer_process.hpp"

namespace weir::verbs_test {

inline constexpr std::size_t memory_bytes = 4u << 20;

class ProcessTest : public testing::Test {
 protected:
  void connect(MemoryKind own = MemoryKind::ordinary, MemoryKind theirs = MemoryKind::ordinary,
               Patience patience = {}) {
    side.emplace(own, memory_bytes);
    far = open_peer(peer, theirs);
    const Reply connected =
        peer.order({.order = Order::connect, .peer = side->address(), .patience = patience});
    ASSERT_EQ(connected.error, 0);
    ASSERT_EQ(bring_up(side->qp.get(), far.qpn, patience), 0);
  }
  static SideAddress open_peer(PeerProcess& process, MemoryKind kind) {
    const Reply reply = process.order({.order = Order::open, .kind = kind, .length = memory_bytes});
    EXPECT_EQ(reply.error, 0);
    return reply.address;
  }
  std::uint64_t far_sum(std::size_t length) {
    return peer.order({.order = Order::sum, .length = length}).checksum;
  }
  std::uint64_t own_sum(std::size_t length) const { return checksum(side->bytes().first(length)); }

  PeerProcess peer;
  std::optional<Side> side;
  SideAddress far;
};

}  // namespace weir::verbs_test
