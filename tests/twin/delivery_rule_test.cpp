// Which packets may lie in the NIC until its process runs: exactly those that a responder takes in silence.
#include "twin/delivery_rule.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "wire/roce.hpp"

namespace weir::twin {
namespace {

using wire::Operation;

constexpr std::uint32_t qpn = 0x4001, rkey = 0x1234, payload_bytes = 64;

struct Sent {
  Operation operation = Operation::write_middle;
  std::uint32_t psn = 0;
  bool asks = false, marked = false;
  std::uint64_t addr = 0x1000;
  wire::Service service = wire::Service::rc;
  std::uint32_t key = rkey;
};

class DeliveryRuleTest : public testing::Test {
 protected:
  bool may_wait(const Sent& sent, std::uint32_t process = 0) {
    wire::Packet packet;
    packet.bth.opcode = wire::opcode(sent.service, sent.operation);
    packet.bth.destination = qpn;
    packet.bth.psn = sent.psn;
    packet.bth.ack_request = sent.asks;
    packet.reth = {sent.addr, sent.key, 4 * payload_bytes};
    std::array<std::byte, wire::longest_headers> headers{};
    const std::size_t length = wire::encode_headers(packet, payload_bytes, headers);
    std::vector<std::byte> bytes(headers.begin(), headers.begin() + static_cast<std::ptrdiff_t>(length));
    bytes.resize(length + payload_bytes + wire::icrc_bytes);
    return rule.may_wait(process, bytes, sent.marked);
  }

  DeliveryRule rule;
};

TEST_F(DeliveryRuleTest, HoldsBackTheMiddleOfAWrite) {
  may_wait({.operation = Operation::write_first, .psn = 10});
  EXPECT_TRUE(may_wait({.psn = 11}));
  EXPECT_TRUE(may_wait({.psn = 12}));
  EXPECT_TRUE(may_wait({.operation = Operation::write_last, .psn = 13}));
}

TEST_F(DeliveryRuleTest, GivesAPacketThatAsksOrIsMarkedAtOnce) {
  may_wait({.psn = 10});
  EXPECT_FALSE(may_wait({.psn = 11, .asks = true}));
  EXPECT_FALSE(may_wait({.psn = 12, .marked = true}));
  EXPECT_TRUE(may_wait({.psn = 13}));
}

TEST_F(DeliveryRuleTest, GivesWhatCompletesAtOnce) {
  may_wait({.psn = 10});
  std::uint32_t psn = 11;
  for (const auto operation :
       {Operation::write_last_imm, Operation::send_first, Operation::send_last, Operation::send_only,
        Operation::write_only_imm, Operation::read_request, Operation::fetch_add, Operation::compare_swap})
    EXPECT_FALSE(may_wait({.operation = operation, .psn = psn++})) << static_cast<int>(operation);
}

TEST_F(DeliveryRuleTest, GivesAnswersAtOnce) {
  for (const auto operation : {Operation::acknowledge, Operation::read_response_middle})
    EXPECT_FALSE(may_wait({.operation = operation}));
}

TEST_F(DeliveryRuleTest, GivesWhatIsOutOfOrderAtOnce) {
  may_wait({.psn = 10});
  EXPECT_FALSE(may_wait({.psn = 12}));  // 11 was lost: a NAK is due
  EXPECT_TRUE(may_wait({.psn = 13}));   // dropped in silence
  EXPECT_FALSE(may_wait({.psn = 11}));  // again, and all behind it: the responder may answer duplicates
  EXPECT_FALSE(may_wait({.psn = 12}));
  EXPECT_FALSE(may_wait({.psn = 13}));
  EXPECT_TRUE(may_wait({.psn = 14}));
}

TEST_F(DeliveryRuleTest, CountsPacketsAroundTheirLastNumber) {
  may_wait({.psn = 0xffffff});
  EXPECT_TRUE(may_wait({.psn = 0}));
}

TEST_F(DeliveryRuleTest, GivesTheFirstWriteIntoMemoryAtOnce) {
  may_wait({.psn = 10});
  EXPECT_FALSE(may_wait({.operation = Operation::write_first, .psn = 11, .addr = 0x1000}));
  EXPECT_TRUE(may_wait({.operation = Operation::write_first, .psn = 12, .addr = 0x1000}));
  EXPECT_FALSE(may_wait({.operation = Operation::write_first, .psn = 13, .addr = 0x9000}));
  // The key was let in at both ends of this.
  EXPECT_TRUE(may_wait({.operation = Operation::write_only, .psn = 14, .addr = 0x5000}));
  EXPECT_FALSE(may_wait({.operation = Operation::write_only, .psn = 15, .addr = 0x5000, .key = rkey + 1}));
}

TEST_F(DeliveryRuleTest, KnowsConnectionsOfProcessesApart) {
  may_wait({.psn = 10}, 1);
  EXPECT_FALSE(may_wait({.psn = 11}, 2));
  EXPECT_TRUE(may_wait({.psn = 11}, 1));
  rule.forget(1);
  EXPECT_FALSE(may_wait({.psn = 12}, 1));
  EXPECT_TRUE(may_wait({.psn = 12}, 2));
}

TEST_F(DeliveryRuleTest, GivesDatagramsAndWhatIsTooShortAtOnce) {
  const std::vector<std::byte> few(8);
  EXPECT_FALSE(rule.may_wait(0, few, false));
  std::vector<std::byte> cut(14);
  cut[0] = std::byte{static_cast<unsigned char>(Operation::write_first)};
  EXPECT_FALSE(rule.may_wait(0, cut, false));
  EXPECT_FALSE(rule.may_wait(0, cut, false));
  may_wait({.psn = 10, .service = wire::Service::uc});
  EXPECT_FALSE(may_wait({.psn = 11, .service = wire::Service::uc}));
}

}  // namespace
}  // namespace weir::twin
