// What a channel sends, and what it accepts from the wire.
#include "rdma/channel/channel_wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace weir::rdma::channel_wire {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(ChannelGreeting, is_24_bytes_that_say_what_they_mean) {
  const Greeting greeting{
      .rendezvous_depth = 4, .window = 25, .block_bytes = 16 << 10, .max_message = 1 << 20};
  const auto wire = encode(greeting);
  const Bytes expected =
      bytes_of({'W', 'C', 'H', 'N', 2, 4, 0, 25, 0, 0, 0x40, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(Bytes(wire.begin(), wire.end()), expected);
  EXPECT_EQ(parse_greeting(wire), greeting);
  Bytes padded(56);
  std::ranges::copy(wire, padded.begin());
  EXPECT_EQ(parse_greeting(padded), greeting) << "transports pad";
}

TEST(ChannelGreeting, of_something_else_is_refused) {
  const auto good =
      encode(Greeting{.rendezvous_depth = 4, .window = 25, .block_bytes = 16 << 10, .max_message = 1});
  struct Case {
    const char* name;
    std::size_t at;
    int value;
  };
  for (const Case& each :
       {Case{"magic", 0, 'X'}, Case{"version", 4, 3}, Case{"depth", 5, 17}, Case{"window of none", 7, 0},
        Case{"block no power of two", 11, 1}, Case{"block too large", 8, 1}, Case{"no message", 15, 0},
        Case{"message too long", 12, 0x80}}) {
    SCOPED_TRACE(each.name);
    auto bad = good;
    bad[each.at] = static_cast<std::byte>(each.value);
    EXPECT_EQ(parse_greeting(bad), std::unexpected(Errc::not_a_channel));
  }
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    EXPECT_EQ(parse_greeting(std::span(good).first(bytes)), std::unexpected(Errc::not_a_channel));
}

TEST(ChannelImmediate, survives_encoding_and_other_kinds_are_refused) {
  for (const auto kind : {Immediate::Kind::data, Immediate::Kind::ack})
    for (const std::uint16_t fetched : {0, 1, 0xfff})
      for (const std::uint16_t credits : {0, 1, 0xffff}) {
        const Immediate immediate{kind, fetched, credits};
        EXPECT_EQ(parse_immediate(encode(immediate)), immediate);
      }
  EXPECT_EQ(encode(Immediate{Immediate::Kind::ack, 2, 3}), 0x20020003u);
  for (std::uint32_t kind = 0; kind < 16; ++kind) {
    if (kind == 1 || kind == 2) continue;
    EXPECT_EQ(parse_immediate(kind << 28 | 5), std::unexpected(Errc::bad_immediate)) << kind;
  }
}

TEST(ChannelFrame, holds_messages_each_padded_to_8_bytes) {
  Bytes frame(16 + 8 + 5);
  put_message_header(frame.data(), 3);
  std::memcpy(frame.data() + 8, "abc", 3);
  put_message_header(frame.data() + 16, 5);
  std::memcpy(frame.data() + 24, "defgh", 5);
  FrameReader reader(frame);
  for (const std::string expected : {"abc", "defgh"}) {
    ASSERT_FALSE(reader.done());
    const auto record = reader.next();
    ASSERT_TRUE(record && std::holds_alternative<WholeMessage>(*record));
    const auto body = std::get<WholeMessage>(*record).body;
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(body.data()), body.size()), expected);
  }
  EXPECT_TRUE(reader.done());
}

TEST(ChannelFrame, parts_and_offers_say_what_was_put) {
  Bytes first(first_header_bytes + 8);
  put_first_header(first.data(), 1000, 8);
  const auto begun = FrameReader(first).next();
  ASSERT_TRUE(begun && std::holds_alternative<FirstPart>(*begun));
  EXPECT_EQ(std::get<FirstPart>(*begun).total, 1000u);
  EXPECT_EQ(std::get<FirstPart>(*begun).body.size(), 8u);

  Bytes more(record_header_bytes + 3);
  put_more_header(more.data(), 3);
  const auto next = FrameReader(more).next();
  ASSERT_TRUE(next && std::holds_alternative<NextPart>(*next));
  EXPECT_EQ(std::get<NextPart>(*next).body.size(), 3u);

  Bytes offer(record_header_bytes + offer_bytes);
  put_offer(offer.data(), {.address = 0x1122334455667788, .length = 99, .rkey = 0xabcdef01, .total = 99});
  const auto offered = FrameReader(offer).next();
  ASSERT_TRUE(offered && std::holds_alternative<Offer>(*offered));
  EXPECT_EQ(std::get<Offer>(*offered).address, 0x1122334455667788u);
  EXPECT_EQ(std::get<Offer>(*offered).length, 99u);
  EXPECT_EQ(std::get<Offer>(*offered).rkey, 0xabcdef01u);
  EXPECT_TRUE(std::get<Offer>(*offered).whole());
}

// `total` 0: the whole message.
Bytes offer_of(Offer offer) {
  if (offer.total == 0) offer.total = offer.length;
  Bytes bytes(offer_record_bytes(offer));
  put_offer(bytes.data(), offer);
  return bytes;
}

TEST(ChannelFrame, a_part_of_an_offered_message_says_which) {
  struct Case {
    std::uint32_t length, total, offset;
    bool last;
  };
  for (const Case& each : {Case{10, 30, 0, false}, Case{10, 30, 10, false}, Case{10, 30, 20, true}}) {
    const Bytes frame = offer_of(
        {.address = 0x1000, .length = each.length, .rkey = 7, .total = each.total, .offset = each.offset});
    const auto record = FrameReader(frame).next();
    ASSERT_TRUE(record && std::holds_alternative<Offer>(*record));
    const auto& part = std::get<Offer>(*record);
    EXPECT_EQ(part.length, each.length);
    EXPECT_EQ(part.rkey, 7u);
    EXPECT_EQ(part.total, each.total);
    EXPECT_EQ(part.offset, each.offset);
    EXPECT_FALSE(part.whole());
    EXPECT_EQ(part.last(), each.last);
  }
}

Bytes first_of(std::uint32_t total, std::size_t bytes) {
  Bytes frame(first_header_bytes + bytes);
  put_first_header(frame.data(), total, static_cast<std::uint32_t>(bytes));
  return frame;
}
// A message of one byte, then `second`.
Bytes after_a_message(const Bytes& second) {
  Bytes frame(16);
  put_message_header(frame.data(), 1);
  frame.insert(frame.end(), second.begin(), second.end());
  return frame;
}

TEST(ChannelFrame, malformed_records_are_refused) {
  Bytes more(record_header_bytes + 3);
  put_more_header(more.data(), 3);
  Bytes trailing = more;
  trailing.resize(32);
  const std::vector<std::pair<const char*, Bytes>> cases = {
      {"half a header", bytes_of({1, 0, 0, 0})},
      {"longer than the frame", bytes_of({1, 0, 0, 0, 0, 0, 0, 1})},
      {"wildly longer", bytes_of({1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})},
      {"unknown type", bytes_of({9, 0, 0, 0, 0, 0, 0, 0})},
      {"reserved bytes", bytes_of({1, 0, 1, 0, 0, 0, 0, 0})},
      {"an empty next part", bytes_of({3, 0, 0, 0, 0, 0, 0, 0})},
      {"a next part with company", trailing},
      {"a first part with company", after_a_message(first_of(100, 8))},
      {"a first part that is all", first_of(8, 8)},
      {"a first part that is more than all", first_of(7, 8)},
      {"a first part without bytes", first_of(7, 0)},
      {"an offer of nothing", offer_of({0x1000, 0, 1})},
      {"an offer that wraps", offer_of({~std::uint64_t{0} - 5, 100, 1})},
      {"a part that ends beyond its message", offer_of({0x1000, 10, 1, 30, 21})},
      {"a part that is more than its message", offer_of({0x1000, 31, 1, 30, 0})},
      {"a part whose offset wraps", offer_of({0x1000, 10, 1, 30, 0xfffffffa})},
      {"a part of nothing", offer_of({0x1000, 0, 1, 30, 10})},
      {"a short offer", bytes_of({4, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4})},
  };
  for (const auto& [name, frame] : cases) {
    SCOPED_TRACE(name);
    FrameReader reader(frame);
    auto record = reader.next();
    while (record && !reader.done()) record = reader.next();
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error(), Errc::bad_frame);
  }
}

}  // namespace
}  // namespace weir::rdma::channel_wire
