// Whatever the network does to a connection's packets, each operation is performed once, in order, and
// completes after it was performed.
#include "bottle.hpp"

#include <gtest/gtest.h>

namespace weir::rnic::packet::test {
namespace {

// One operation of each kind, and some of several packets.
std::vector<Operation> exchange() {
  return {
      {.opcode = SendOpcode::send, .length = 11},
      {.opcode = SendOpcode::rdma_write, .length = 600, .remote = constant_bytes},
      {.opcode = SendOpcode::fetch_and_add,
       .length = 8,
       .local = answers_at,
       .remote = constant_bytes,
       .compare_add = 5},
      {.opcode = SendOpcode::rdma_read, .length = 700, .local = answers_at + 64, .remote = constant_bytes},
      {.opcode = SendOpcode::compare_and_swap,
       .length = 8,
       .local = answers_at + 16,
       .remote = constant_bytes + 8,
       .fence = true,
       .swap = 9},
      {.opcode = SendOpcode::send_with_imm,
       .length = 520,
       .solicited = true,
       .in_pieces = true,
       .imm = 0x01020304},
      {.opcode = SendOpcode::atomic_write, .length = 8, .remote = constant_bytes + 16},
      {.opcode = SendOpcode::send_with_invalidate, .length = 0, .imm = 0x55},
      {.opcode = SendOpcode::rdma_write_with_imm, .length = 300, .remote = constant_bytes + 64, .imm = 7},
      {.opcode = SendOpcode::send, .length = 256}};
}

enum class From { one_end, both_ends };

std::uint64_t play(Bottle& bottle, From from = From::both_ends) {
  auto operations = exchange();
  if (bottle.options.service == wire::Service::xrc) spread_over_srqs(operations);
  for (const Operation& op : operations) bottle.ends[0]->post(*bottle.ends[1], op);
  if (from == From::both_ends)
    for (const Operation& op : operations) bottle.ends[1]->post(*bottle.ends[0], op);
  EXPECT_TRUE(bottle.run()) << "it never ends";
  EXPECT_EQ(bottle.differences(), "");
  return bottle.packets;
}

constexpr Options small_packets(wire::Service service) {
  Options options{.service = service, .path_mtu = 256};
  return options;
}
const auto services = testing::Values(wire::Service::rc, wire::Service::xrc);
std::string name_of(wire::Service service) { return service == wire::Service::xrc ? "xrc" : "rc"; }

class GoodNetwork : public testing::TestWithParam<wire::Service> {};
INSTANTIATE_TEST_SUITE_P(Services, GoodNetwork, services,
                         [](const auto& param_info) { return name_of(param_info.param); });

TEST_P(GoodNetwork, an_exchange_sends_nothing_twice) {
  Bottle bottle(small_packets(GetParam()));
  bottle.watch = [](std::uint32_t, const wire::Packet& packet, std::span<const std::byte>) {
    EXPECT_EQ(static_cast<wire::Service>(packet.bth.opcode >> 5), GetParam());
  };
  play(bottle);
  for (const auto& end : bottle.ends) {
    EXPECT_EQ(end->requester->counts().retransmitted, 0u);
    EXPECT_EQ(end->responder->counts().duplicates, 0u);
    EXPECT_EQ(end->responder->counts().sequence_naks, 0u);
  }
}

struct FaultRow {
  const char* name;
  Fate fate;
};
class EachPacket : public testing::TestWithParam<std::tuple<wire::Service, FaultRow>> {
 protected:
  const Options small = small_packets(std::get<0>(GetParam()));
  const Fate hits = std::get<1>(GetParam()).fate;
};
INSTANTIATE_TEST_SUITE_P(
    Faults, EachPacket,
    testing::Combine(services, testing::Values(FaultRow{"dropped", {.dropped = true}},
                                               FaultRow{"corrupted", {.corrupted = true}},
                                               FaultRow{"doubled", {.copies = 2}},
                                               FaultRow{"overtaken", {.delayed_ns = 1 * microsecond}},
                                               FaultRow{"late", {.delayed_ns = 5 * millisecond}},
                                               FaultRow{"doubled_late",
                                                        {.copies = 2, .delayed_ns = 100 * microsecond}})),
    [](const auto& row) { return name_of(std::get<0>(row.param)) + "_" + std::get<1>(row.param).name; });

TEST_P(EachPacket, of_an_exchange_may_be_hit) {
  Bottle undisturbed(small);
  const std::uint64_t packets = play(undisturbed);
  for (std::uint64_t hit = 0; hit < packets; ++hit) {
    SCOPED_TRACE(hit);
    Bottle bottle(small);
    bottle.fate = [&](std::uint64_t n) { return n == hit ? hits : Fate{}; };
    play(bottle);
    if (HasFailure()) return;
    EXPECT_EQ(bottle.ends[0]->requester->counts().timeouts, 0u) << "the probe is faster";
  }
}

TEST_P(EachPacket, of_an_exchange_may_be_hit_with_another) {
  Bottle undisturbed(small);
  const std::uint64_t packets = play(undisturbed, From::one_end);
  for (std::uint64_t first = 0; first < packets; ++first) {
    for (std::uint64_t second = first + 1; second < packets; ++second) {
      Bottle bottle(small);
      bottle.fate = [&](std::uint64_t n) { return n == first || n == second ? hits : Fate{}; };
      play(bottle, From::one_end);
      if (HasFailure()) {
        ADD_FAILURE() << "packets " << first << " and " << second;
        return;
      }
    }
  }
}

TEST(Bottle, random_exchanges_over_random_networks) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    play_seed(seed);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace weir::rnic::packet::test
