// The bytes that two stream rsockets exchange. The golden values follow the protocol of rsocket(7), because
// rdma-core may be the other side.
#include "verbs/rsocket/stream_wire.hpp"

#include <gmock/gmock.h>

namespace weir::rsocket {
namespace {

Greeting some_greeting() {
  return {.credits = 0x0180,
          .big_endian = false,
          .iomap_entries = 4,
          .buffer_list = {0x1122334455667788, 0xa1a2a3a4, 2},
          .first_buffer = {0x0102030405060708, 0xb1b2b3b4, 65536}};
}

std::vector<int> numbers(std::span<const std::byte> bytes) {
  std::vector<int> all;
  for (const auto byte : bytes) all.push_back(std::to_integer<int>(byte));
  return all;
}

TEST(StreamGreeting, has_the_layout_of_protocol_version_1) {
  EXPECT_THAT(numbers(encode(some_greeting())),
              testing::ElementsAreArray({1,    2,    0x01, 0x80, 0,    0,    0,    4,                       //
                                         0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xa1, 0xa2, 0xa3,  //
                                         0xa4, 0,    0,    0,    2,                                         //
                                         1,    2,    3,    4,    5,    6,    7,    8,    0xb1, 0xb2, 0xb3,  //
                                         0xb4, 0,    1,    0,    0}));
}

TEST(StreamGreeting, comes_back_from_its_bytes) {
  auto greeting = some_greeting();
  EXPECT_EQ(parse_greeting(encode(greeting)), greeting);
  greeting.big_endian = true;
  EXPECT_EQ(parse_greeting(encode(greeting)), greeting);
}

TEST(StreamGreeting, may_be_padded_as_private_data_is) {
  const auto bytes = encode(some_greeting());
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  padded.resize(56);
  EXPECT_EQ(parse_greeting(padded), some_greeting());
}

TEST(StreamGreeting, without_the_iomap_flag_has_no_iomap) {
  auto bytes = encode(some_greeting());
  bytes[1] = std::byte{0};
  EXPECT_EQ(parse_greeting(bytes)->iomap_entries, 0U);
}

struct Spoiled {
  const char* what;
  std::size_t at, count;
  std::uint8_t value;
};
class SpoiledGreeting : public testing::TestWithParam<Spoiled> {};
TEST_P(SpoiledGreeting, is_refused) {
  auto bytes = encode(some_greeting());
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(GetParam().at), GetParam().count,
              std::byte{GetParam().value});
  EXPECT_EQ(parse_greeting(bytes), std::nullopt) << GetParam().what;
}
INSTANTIATE_TEST_SUITE_P(Each, SpoiledGreeting,
                         testing::Values(Spoiled{"another version", 0, 1, 2}, Spoiled{"no credits", 2, 2, 0},
                                         Spoiled{"no list entries", 20, 4, 0},
                                         Spoiled{"absurdly many list entries", 20, 1, 1},
                                         Spoiled{"a first buffer of no length", 36, 4, 0}));

TEST(StreamGreeting, cut_short_is_refused) {
  const auto bytes = encode(some_greeting());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(parse_greeting(std::span(bytes).first(size)), std::nullopt) << size;
  }
}

struct ImmediateRow {
  Immediate immediate;
  std::uint32_t bits;
};
class ImmediateBits : public testing::TestWithParam<ImmediateRow> {};
TEST_P(ImmediateBits, are_those_of_the_protocol) {
  EXPECT_EQ(pack(GetParam().immediate), GetParam().bits);
  EXPECT_EQ(unpack(GetParam().bits), GetParam().immediate);
}
INSTANTIATE_TEST_SUITE_P(Each, ImmediateBits,
                         testing::Values(ImmediateRow{{Op::data, 1}, 0x00000001},
                                         ImmediateRow{{Op::data, max_immediate_value}, 0x1fffffff},
                                         ImmediateRow{{Op::credit, 0xffff}, 0x8000ffff},
                                         ImmediateRow{{Op::iomap, 3}, 0xc0000003},
                                         ImmediateRow{{Op::control, 0}, 0xe0000000},
                                         ImmediateRow{{Op::control, 2}, 0xe0000002}));

TEST(ImmediateReserved, ops_are_refused) {
  for (const std::uint32_t op : {1U, 2U, 3U, 5U}) EXPECT_EQ(unpack(op << 29), std::nullopt) << op;
}

struct ScaleRow {
  std::uint32_t entries;
  std::uint8_t scale;
  std::uint32_t back;
};
class Scale : public testing::TestWithParam<ScaleRow> {};
TEST_P(Scale, is_exact_to_128_and_in_steps_of_256_above) {
  EXPECT_EQ(to_scale(GetParam().entries), GetParam().scale);
  EXPECT_EQ(from_scale(GetParam().scale), GetParam().back);
}
INSTANTIATE_TEST_SUITE_P(Each, Scale,
                         testing::Values(ScaleRow{0, 0, 0}, ScaleRow{1, 1, 1}, ScaleRow{128, 128, 128},
                                         ScaleRow{256, 129, 256}, ScaleRow{300, 129, 256},
                                         ScaleRow{512, 130, 512}, ScaleRow{1 << 30, 255, max_iomap_entries}));

}  // namespace
}  // namespace weir::rsocket
