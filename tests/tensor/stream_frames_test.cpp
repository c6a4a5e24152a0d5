#include "tensor/link/stream_frames.hpp"

#include <gtest/gtest.h>

namespace weir::tensor::frames {
namespace {

TEST(Frames, headers_come_back_as_they_were) {
  for (const Header& each : {Header{Kind::message, 0, 0}, Header{Kind::message, 0, wire::message_bytes},
                             Header{Kind::data, ~0U, most_data_bytes}, Header{Kind::record, 0, 32}}) {
    const auto parsed = parse_header(encode(each));
    ASSERT_TRUE(parsed);
    EXPECT_EQ(*parsed, each);
  }
  EXPECT_EQ(encode({Kind::data, 0x01020304, 5})[4], std::byte{4}) << "little-endian";
}

TEST(Frames, what_a_kind_may_not_be_is_refused) {
  for (const Header& each : {Header{static_cast<Kind>(0), 0, 0}, Header{static_cast<Kind>(4), 0, 0},
                             Header{Kind::message, 0, wire::message_bytes + 1}, Header{Kind::message, 1, 8},
                             Header{Kind::data, 1, most_data_bytes + 1}, Header{Kind::data, 1, ~0ULL},
                             Header{Kind::record, 0, 31}, Header{Kind::record, 2, 32}})
    EXPECT_EQ(parse_header(encode(each)).error().code, Errc::protocol);
}

}  // namespace
}  // namespace weir::tensor::frames
