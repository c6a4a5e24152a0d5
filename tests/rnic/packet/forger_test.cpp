// A stranger that forges packets of a connection: it knows addresses and queue pair numbers, and guesses
// PSNs. What it cannot guess changes nothing, and teaches it nothing.
#include <gtest/gtest.h>

#include <random>

#include "bottle.hpp"
#include "wire/roce.hpp"

namespace weir::rnic::packet::test {
namespace {

using Wire = wire::Operation;

class Forger : public testing::TestWithParam<wire::Service> {
 protected:
  wire::Packet request(Psn psn, Wire operation = Wire::write_only, std::uint64_t addr = exposed_at,
                       std::span<const std::byte> payload = {}) const {
    wire::Packet packet;
    packet.bth.opcode = wire::opcode(GetParam(), operation);
    packet.bth.psn = psn.value();
    packet.bth.ack_request = true;
    packet.reth = {addr, exposed_key, static_cast<std::uint32_t>(payload.size())};
    packet.payload = payload;
    return packet;
  }
  Responder& responder() { return *bottle.ends[1]->responder; }
  // How many packets answer it.
  int answers_to(const wire::Packet& packet) {
    responder().receive(packet);
    std::array<iovec, max_sge> room;
    Outgoing out;
    out.room = room;
    int answers = 0;
    while (responder().next_packet(out)) ++answers;
    return answers;
  }

  Bottle bottle{{.service = GetParam(), .path_mtu = 256}};
  const std::vector<std::byte> sixteen = std::vector<std::byte>(16, std::byte{7});
};

std::string name_of(const testing::TestParamInfo<wire::Service>& info) {
  return info.param == wire::Service::xrc ? "xrc" : "rc";
}
INSTANTIATE_TEST_SUITE_P(Services, Forger, testing::Values(wire::Service::rc, wire::Service::xrc), name_of);

TEST_P(Forger, gets_no_answer_further_than_a_window_away) {
  constexpr std::uint32_t window = 1u << 16;
  struct Row {
    const char* what;
    std::uint32_t ahead;  // modulo 2^24
    int answers;
  };
  for (const Row& row :
       {Row{"half of all PSNs ahead", 0x7fffff, 0}, Row{"beyond the window", window + 1, 0},
        Row{"half of all PSNs behind", 0x800000, 0}, Row{"before the window", 0x1000000 - window - 1, 0},
        Row{"the first of the window", 0x1000000 - window, 1}, Row{"the last of the window", window, 1}}) {
    const auto outside = responder().counts().outside;
    EXPECT_EQ(answers_to(request(responder().expected() + row.ahead)), row.answers) << row.what;
    EXPECT_EQ(responder().counts().outside, outside + (row.answers == 0 ? 1 : 0)) << row.what;
  }
}

TEST_P(Forger, gets_no_answer_to_a_packet_unlike_the_executed_one) {
  const Psn first = responder().expected();
  const wire::Packet executed = request(first, Wire::write_only, exposed_at + 64, sixteen);
  ASSERT_EQ(answers_to(executed), 1);
  EXPECT_EQ(answers_to(executed), 1) << "the acknowledgement was lost, and the peer asks again";
  wire::Packet without_request = executed;
  without_request.bth.ack_request = false;
  EXPECT_EQ(answers_to(without_request), 1) << "the flags of a repeated packet may differ";
  EXPECT_EQ(answers_to(request(first, Wire::write_only, exposed_at + 64)), 0) << "another length";
  EXPECT_EQ(answers_to(request(first, Wire::write_only, exposed_at + 65, sixteen)), 0) << "another address";
  EXPECT_EQ(answers_to(request(first, Wire::send_only, 0, sixteen)), 0) << "another operation";
  EXPECT_EQ(responder().counts().outside, 3u);
  EXPECT_FALSE(responder().failed());
}

// A READ's responses take as many PSNs as they have packets; a request before it may still be repeated.
TEST_P(Forger, narrows_no_window_that_a_read_has_widened) {
  const Psn first = responder().expected();
  ASSERT_EQ(answers_to(request(first)), 1);
  wire::Packet read = request(first + 1, Wire::read_request);
  read.reth.length = exposed_bytes;
  ASSERT_EQ(answers_to(read), static_cast<int>(exposed_bytes / 256));
  EXPECT_EQ(answers_to(request(first)), 1);
}

// If a forger hits the expected PSN, the peer's own packet must not seem delivered.
TEST_P(Forger, that_hits_makes_the_connection_fail_and_lose_no_data) {
  bottle.forge(1, request(responder().expected()));
  EXPECT_TRUE(bottle.run());  // the acknowledgement comes while nothing is outstanding
  bottle.ends[0]->post(*bottle.ends[1], {.opcode = SendOpcode::rdma_write, .length = 100});
  EXPECT_TRUE(bottle.run());
  ASSERT_EQ(bottle.ends[0]->completions.size(), 1u);
  EXPECT_EQ(bottle.ends[0]->completions[0], WcStatus::retry_exc_err);
}

TEST_P(Forger, that_never_hits_changes_nothing) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Bottle ends({.service = GetParam(), .path_mtu = 256}, seed);
    std::mt19937_64 random(seed);
    std::array<Psn, 2> sent{ends.options.first_psn, ends.options.first_psn};
    ends.watch = [&](std::uint32_t from, const wire::Packet& packet, std::span<const std::byte>) {
      if (!Responder::is_answer(packet)) sent[from] = Psn(packet.bth.psn);
    };
    const auto forge = [&](std::uint32_t to) {
      wire::Packet packet;
      const auto operation = static_cast<Wire>(random() % 32);
      packet.bth.opcode = wire::opcode(GetParam(), operation);
      if (!wire::extensions_of(packet.bth.opcode)) return;
      const bool near = random() % 2 != 0;
      const Psn expected = ends.ends[to]->responder->expected();
      packet.bth.psn = near ? (expected + static_cast<std::uint32_t>(random() % 512 - 256)).value()
                            : Psn(static_cast<std::uint32_t>(random())).value();
      packet.bth.ack_request = random() % 2 != 0;
      packet.reth = {exposed_at, exposed_key, 0};
      packet.aeth.syndrome = static_cast<std::uint8_t>(random());
      const std::int32_t from_sent = Psn(packet.bth.psn) - sent[to];
      const bool hits = Responder::is_answer(packet) ? from_sent > -8192 && from_sent < 8192
                                                     : Psn(packet.bth.psn) == expected;
      if (!hits) ends.forge(to, packet);
    };
    for (std::uint64_t at = 1; at < 400; ++at)
      ends.at(at * 5 * microsecond, [&forge] {
        forge(0);
        forge(1);
      });
    for (std::uint32_t from : {0u, 1u}) {
      auto operations = random_operations(random, 15, 256);
      if (GetParam() == wire::Service::xrc) spread_over_srqs(operations);
      for (const Operation& op : operations) ends.ends[from]->post(*ends.ends[1 - from], op);
    }
    EXPECT_TRUE(ends.run()) << "it never ends";
    EXPECT_EQ(ends.differences(), "");
  }
}

}  // namespace
}  // namespace weir::rnic::packet::test
