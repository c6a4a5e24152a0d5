// Golden bytes of the four control messages, and the messages that are refused.
#include "rdma/stream/control_message.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

namespace weir::rdma {
namespace {

using testing::ElementsAreArray;

std::vector<std::byte> bytes(std::initializer_list<int> values) {
  std::vector<std::byte> out;
  for (int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

struct Golden {
  std::string name;
  ControlMessage message;
  std::vector<std::byte> wire;
};

const std::vector<Golden>& goldens() {
  // clang-format off
  static const std::vector<Golden> table = {
      {"get_server_feature", GetServerFeature{.select = 0x0102, .features = 0x1112131415161718},
       bytes({0, 0, 0x01, 0x02, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,
              0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18})},
      {"set_client_feature", SetClientFeature{.select = 3, .features = 0x8000000000000001},
       bytes({0, 1, 0, 3, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,
              0x80, 0, 0, 0, 0, 0, 0, 1})},
      {"keepalive", Keepalive{},
       bytes({0, 2, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0})},
      {"register_xfer_memory", RegisterXferMemory{.addr = 0x00007f1234567000, .length_bytes = 1 << 20, .rkey = 0xcafe0042},
       bytes({0, 3, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0x7f, 0x12, 0x34, 0x56, 0x70, 0,
              0, 0x10, 0, 0,  0xca, 0xfe, 0, 0x42})},
  };
  // clang-format on
  return table;
}

TEST(ControlMessage, encodes_to_golden_bytes) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(golden.name);
    EXPECT_THAT(encode(golden.message), ElementsAreArray(golden.wire));
  }
}

TEST(ControlMessage, parses_golden_bytes) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(golden.name);
    const auto parsed = parse(golden.wire);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(*parsed, golden.message);
  }
}

TEST(ControlMessage, ignores_reserved_bytes) {
  std::vector<std::byte> wire = goldens()[3].wire;
  for (std::size_t i = 2; i < 16; ++i) wire[i] = std::byte{0xff};
  EXPECT_EQ(parse(wire), goldens()[3].message);
}

TEST(ControlMessage, refuses_every_other_length) {
  const std::vector<std::byte> longest(64, std::byte{0});
  for (std::size_t length = 0; length <= longest.size(); ++length) {
    if (length == control_message_bytes) continue;
    SCOPED_TRACE(length);
    EXPECT_EQ(parse(std::span(longest).first(length)), std::unexpected(Errc::bad_control_length));
  }
}

TEST(ControlMessage, refuses_every_unknown_opcode) {
  std::vector<std::byte> wire(control_message_bytes, std::byte{1});
  for (int opcode = 4; opcode <= 0xffff; ++opcode) {
    wire[0] = static_cast<std::byte>(opcode >> 8);
    wire[1] = static_cast<std::byte>(opcode & 0xff);
    ASSERT_EQ(parse(wire), std::unexpected(Errc::unknown_opcode)) << opcode;
  }
}

TEST(ControlMessage, refuses_impossible_buffers) {
  struct Case {
    std::string name;
    RegisterXferMemory announced;
    bool legal;
  };
  const std::vector<Case> cases = {
      {"length 0", {0x1000, 0, 1}, false},
      {"wraps around", {0xfffffffffffff000, 0x1001, 1}, false},
      {"wraps by one", {0xffffffffffffffff, 1, 1}, false},
      {"ends at the top", {0xfffffffffffff000, 0x0fff, 1}, true},
      {"one byte at address 0", {0, 1, 0}, true},
      {"all of 4 GiB", {0x1000, 0xffffffff, 1}, true},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    const auto parsed = parse(encode(each.announced));
    if (each.legal)
      EXPECT_EQ(parsed, ControlMessage(each.announced));
    else
      EXPECT_EQ(parsed, std::unexpected(Errc::bad_announcement));
  }
}

}  // namespace
}  // namespace weir::rdma
