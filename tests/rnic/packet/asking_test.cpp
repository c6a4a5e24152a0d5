// Which packets ask for an acknowledgement (AckReq), and what is done where none was asked.
#include <gtest/gtest.h>

#include "bottle.hpp"
#include "rnic/packet/rnr_timer.hpp"

namespace weir::rnic::packet::test {
namespace {

constexpr Operation heard{.opcode = SendOpcode::send, .length = 100};  // the program waits for its completion
constexpr Operation unheard{.opcode = SendOpcode::send, .length = 100, .signaled = false};

// The places of the requests that asked, among all requests.
std::vector<std::size_t> asking(Bottle& bottle, std::vector<Operation> operations) {
  std::vector<std::size_t> asked;
  std::size_t requests = 0;
  bottle.watch = [&](std::uint32_t from, const wire::Packet& packet, std::span<const std::byte>) {
    if (from != 0) return;
    if (packet.bth.ack_request) asked.push_back(requests);
    ++requests;
  };
  for (const Operation& operation : operations) bottle.ends[0]->post(*bottle.ends[1], operation);
  bottle.run(millisecond);
  bottle.watch = {};
  EXPECT_EQ(requests, operations.size());
  return asked;
}

TEST(Asking, is_for_signalled_messages) {
  const struct {
    const char* named;
    std::vector<Operation> posted;
    std::vector<std::size_t> ask;
  } rows[] = {
      {"one unsignalled", {unheard}, {}},
      {"one signalled", {heard}, {0}},
      {"the last is signalled", {unheard, unheard, heard}, {2}},
      {"the first is signalled: the last asks for it", {heard, unheard, unheard}, {2}},
      {"a READ is its own answer", {{.opcode = SendOpcode::rdma_read, .length = 8, .signaled = false}}, {0}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.named);
    Bottle bottle({});
    EXPECT_EQ(asking(bottle, row.posted), row.ask);
  }
}

TEST(Asking, is_done_by_every_sixteenth_packet_of_a_stream) {
  Bottle bottle({});
  EXPECT_EQ(asking(bottle, std::vector(40, unheard)), (std::vector<std::size_t>{15, 31}));
}

TEST(Asking, is_always_done_with_a_short_timeout) {
  Bottle bottle({.timeout = 8});
  EXPECT_EQ(asking(bottle, {unheard}), (std::vector<std::size_t>{0}));
}

TEST(Asking, is_made_up_for_by_one_probe) {
  for (const std::uint8_t timeout : {std::uint8_t{0}, std::uint8_t{11}, std::uint8_t{14}, std::uint8_t{20}}) {
    SCOPED_TRACE(int{timeout});
    Bottle bottle({.timeout = timeout});
    const std::uint64_t began = bottle.now_ns;
    for (int i = 0; i < 5; ++i) bottle.ends[0]->post(*bottle.ends[1], unheard);
    ASSERT_TRUE(bottle.run());
    EXPECT_EQ(bottle.differences(), "");
    const RequesterCounts& counts = bottle.ends[0]->requester->counts();
    EXPECT_EQ(counts.probes, 1u);
    EXPECT_EQ(counts.retransmitted, 1u);
    EXPECT_EQ(counts.timeouts, 0u);
    EXPECT_LE(bottle.now_ns - began, 11 * millisecond);
  }
}

TEST(Asking, of_a_slow_stream_spares_the_probes) {
  Bottle bottle({});
  for (std::uint64_t i = 0; i < 100; ++i)
    bottle.at(1 + i * 2 * millisecond, [&] { bottle.ends[0]->post(*bottle.ends[1], unheard); });
  bottle.run(199 * millisecond);
  EXPECT_EQ(bottle.ends[0]->requester->counts().probes, 0u);
  EXPECT_LE(bottle.ends[1]->responder->counts().acks, 34u);
}

TEST(Asking, repairs_a_lost_unsignalled_tail) {
  Bottle bottle({});
  for (int i = 0; i < 5; ++i) bottle.ends[0]->post(*bottle.ends[1], unheard);
  bottle.fate = [](std::uint64_t n) { return Fate{.dropped = n == 3 || n == 4}; };
  const std::uint64_t began = bottle.now_ns;
  ASSERT_TRUE(bottle.run());
  EXPECT_EQ(bottle.differences(), "");
  EXPECT_LE(bottle.now_ns - began, 15 * millisecond);
}

TEST(Asking, may_be_demanded_for_what_is_on_its_way) {
  Bottle bottle({});
  EXPECT_EQ(asking(bottle, {unheard, unheard}), (std::vector<std::size_t>{}));
  ASSERT_FALSE(bottle.ends[0]->requester->idle());
  bottle.ends[0]->requester->ask();
  bottle.pump();
  bottle.run(millisecond);
  EXPECT_TRUE(bottle.ends[0]->requester->idle());
  EXPECT_EQ(bottle.ends[0]->requester->counts().probes, 1u);
}

}  // namespace
}  // namespace weir::rnic::packet::test
