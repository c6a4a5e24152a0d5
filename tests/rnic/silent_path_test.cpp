// A path on which nothing passes any more: it is reported, and packets that then go another way rewind the
// connection, so that nothing is lost or done twice.
#include "two_hosts.hpp"

namespace weir::rnic::test {
namespace {

// The first carrier loses every packet from the one with that number on, in either direction; the second one
// carries what is sent after the silence was reported.
class TwoCarriers : public TwoHosts {
 protected:
  TwoCarriers() {
    drop = [this](const OnWire&) { return !moved && carried > passes; };
    a_nic.on_silence = [this](const PacketRoute& route, Qpn to) {
      EXPECT_EQ(route.destination, b_gid);
      EXPECT_EQ(to, b->qpn());
      moved = true;
    };
    b_nic.on_silence = [this](const PacketRoute&, Qpn) { moved = true; };
    connect_hosts();
  }

  std::size_t passes = 0;  // packets
  bool moved = false;
  Memory mine{a_nic, 1u << 20, all_access, Reach::mapped}, other{b_nic, 1u << 20, all_access, Reach::mapped};
};

TEST_F(TwoCarriers, connections_go_on_by_the_other_carrier_from_any_packet) {
  constexpr std::size_t messages = 20, size = 5'000;
  for (const std::size_t before : {0u, 1u, 2u, 7u, 30u, 61u, 90u}) {
    SCOPED_TRACE(before);
    passes = carried + before;
    moved = false;
    mine.fill(static_cast<std::uint32_t>(before));
    other.clear();
    for (std::size_t i = 0; i < messages; ++i) {
      ASSERT_EQ(b->recv(i, {other.sge(i * size, size)}), PostResult::ok);
      ASSERT_EQ(a->send(100 + i, mine.sge(i * size, size)), PostResult::ok);
    }
    std::size_t sent = 0, received = 0;
    ASSERT_TRUE(carry_until([&] {
      for (; auto done = a->poll_send(); ++sent) EXPECT_TRUE(completed(done, 100 + sent));
      for (; auto done = b->poll_recv(); ++received) EXPECT_TRUE(completed(done, received));
      return sent == messages && received == messages;
    }));
    EXPECT_TRUE(moved);
    EXPECT_EQ(other.part(0, messages * size), mine.part(0, messages * size));
    EXPECT_FALSE(b->poll_recv()) << "received twice";
  }
}

TEST_F(TwoCarriers, atomics_and_reads_under_way_happen_once) {
  for (const std::size_t before : {0u, 1u, 2u, 3u}) {
    SCOPED_TRACE(before);
    passes = carried + before;
    moved = false;
    other.clear();
    constexpr std::uint64_t adds = 5;
    for (std::uint64_t i = 0; i < adds; ++i)
      ASSERT_EQ(a->post({.wr_id = i,
                         .opcode = SendOpcode::fetch_and_add,
                         .flags = send_flag::signaled,
                         .remote_addr = other.addr(),
                         .rkey = other.key(),
                         .atomic = {.compare_add = 1, .swap = 0}},
                        {mine.sge(8 * i, 8)}),
                PostResult::ok);
    std::uint64_t done = 0;
    ASSERT_TRUE(carry_until([&] {
      for (; auto each = a->poll_send(); ++done) EXPECT_TRUE(completed(each, done));
      return done == adds;
    }));
    std::uint64_t sum = 0;
    std::memcpy(&sum, other.data(), sizeof sum);
    EXPECT_EQ(sum, adds);
  }
}

TEST_F(TwoCarriers, a_path_that_loses_one_packet_is_not_silent) {
  passes = ~std::size_t{0};
  bool lost = false;
  drop = [&](const OnWire&) { return !std::exchange(lost, true); };
  ASSERT_EQ(b->recv(1, {other.sge(0, 100)}), PostResult::ok);
  ASSERT_EQ(a->send(2, mine.sge(0, 100)), PostResult::ok);
  ASSERT_TRUE(carry_until([&] { return a->poll_send().has_value(); }));
  EXPECT_TRUE(lost);
  EXPECT_FALSE(moved);
}

}  // namespace
}  // namespace weir::rnic::test
