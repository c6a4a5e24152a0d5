#include "tensor/link/wire.hpp"

#include <gtest/gtest.h>

namespace weir::tensor::wire {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// The message of a frame that has only one.
Result<Message> only(std::span<const std::byte> frame) {
  Result<Message> message = take_message(frame);
  if (message && !frame.empty()) return fail(Errc::protocol, "more than one message");
  return message;
}

std::vector<Message> samples() {
  return {
      Request{.index = 65,
              .wait = true,
              .metadata_id = 7,
              .newer_than = 8,
              .generation = 9,
              .to = {1, 2, 3},
              .name = "a"},
      Request{.index = 1, .locate = true, .name_id = 4},
      MetadataUpdate{2, 1, 2, 3, 4, 5, bytes_of("12345")},
      MetadataUpdate{2, 1, 2, 3, 4, 1 << 20, {}},
      ReRequest{3, true, false, {~0ULL, ~0ULL, ~0U}},
      ReRequest{3, false, true, {}},
      ErrorStatus{4, Errc::superseded, 5, "why"},
      Cancel{5},
      Location{6, 7, {{1, 2, 3}, {4, 5, 6}}},
      Done{~0U},
      Request{.index = 9, .wait = true, .follow = true, .name = "a"},
      Push{8, false, 9, 5, "name", bytes_of("block")},
      Push{8, true, 9, 1 << 20, "name", {}},
      Parts{10, {{1, 2}, {3, 4}}},
      LeaseDone{11, 2, 3, "name", "word"},
  };
}

TEST(TensorWire, messages_come_back_as_they_were) {
  for (const Message& each : samples()) {
    const std::vector<std::byte> bytes = encode(each);
    ASSERT_LE(bytes.size(), message_bytes);
    const auto parsed = only(bytes);
    ASSERT_TRUE(parsed) << each.index();
    EXPECT_EQ(*parsed, each) << each.index();
    EXPECT_EQ(index_of(*parsed), index_of(each));
  }
}

TEST(TensorWire, no_part_of_a_message_is_a_message) {
  for (const Message& each : samples()) {
    std::vector<std::byte> bytes = encode(each);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(only(std::span(bytes).first(size))) << each.index() << " " << size;
    bytes.push_back({});
    EXPECT_FALSE(only(bytes)) << each.index();
  }
}

TEST(TensorWire, a_frame_holds_messages_one_after_the_other) {
  std::vector<std::byte> all;
  for (const Message& each : samples()) {
    const std::vector<std::byte> bytes = encode(each);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  std::span<const std::byte> frame(all);
  for (const Message& each : samples()) {
    const auto taken = take_message(frame);
    ASSERT_TRUE(taken) << each.index();
    EXPECT_EQ(*taken, each) << each.index();
  }
  EXPECT_TRUE(frame.empty());
  EXPECT_FALSE(take_message(frame));
  const std::vector<std::byte> longest(message_bytes + 1);
  frame = longest;
  EXPECT_FALSE(take_message(frame));
}

TEST(TensorWire, refuses_unknown_kinds_and_flags) {
  std::vector<std::byte> bytes = encode(Cancel{5});
  for (const unsigned kind : {0U, 9U, 255U}) {
    bytes[0] = static_cast<std::byte>(kind);
    EXPECT_FALSE(only(bytes)) << kind;
  }
  bytes = encode(Cancel{5});
  bytes[1] = std::byte{1};
  EXPECT_FALSE(only(bytes));
  bytes[1] = std::byte{0};
  bytes[3] = std::byte{1};
  EXPECT_FALSE(only(bytes));
}

TEST(TensorWire, a_request_has_a_name_or_its_number) {
  EXPECT_FALSE(only(encode(Request{.index = 1})));
  EXPECT_FALSE(only(encode(Request{.index = 1, .name_id = 1, .name = "a"})));
  EXPECT_FALSE(only(encode(Request{.index = 1, .name = std::string(1025, 'n')})));
}

// The layout is fixed: recorded messages stay readable.
TEST(TensorWire, layout_is_little_endian) {
  const std::vector<std::byte> bytes = encode(Done{0x01020304});
  EXPECT_EQ(bytes, (std::vector<std::byte>{
                       std::byte{7}, {}, {}, {}, std::byte{4}, std::byte{3}, std::byte{2}, std::byte{1}}));
}

TEST(TensorGreeting, comes_back_and_refuses_others) {
  const Greeting ours{64, 77, {1, slots * record_bytes, 3}};
  std::vector<std::byte> bytes = encode(ours);
  ASSERT_EQ(bytes.size(), greeting_bytes);
  EXPECT_LE(bytes.size(), 56U);  // the private data of RDMA's connection manager
  bytes.resize(56);              // padded
  EXPECT_EQ(parse_greeting(bytes).value(), ours);
  bytes[4] = std::byte{version + 1};
  EXPECT_FALSE(parse_greeting(bytes));
  for (Greeting bad :
       {Greeting{1, 0, ours.records}, Greeting{1025, 0, ours.records}, Greeting{64, 0, {1, 31, 3}}})
    EXPECT_FALSE(parse_greeting(encode(bad)));
}

}  // namespace
}  // namespace weir::tensor::wire
