// The W3C trace context as text and as bytes.
#include "rpc/trace_context.hpp"

#include <gtest/gtest.h>

namespace weir::rpc {
namespace {

// The example of the specification, 3.2.3.
constexpr std::string_view example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, traceparent_comes_back_as_it_was_written) {
  const auto trace = parse_traceparent(example);
  ASSERT_TRUE(trace);
  EXPECT_EQ(trace->trace_id[0], 0x4b);
  EXPECT_EQ(trace->trace_id[15], 0x36);
  EXPECT_EQ(trace->span_id[1], 0xf0);
  EXPECT_TRUE(trace->sampled());
  EXPECT_EQ(traceparent(*trace), example);
}

TEST(TraceContext, a_later_version_is_read_as_this_one) {
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
  EXPECT_TRUE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
  EXPECT_FALSE(parse_traceparent("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more"));
}

TEST(TraceContext, what_is_none_is_not_followed) {
  for (const char* text : {"", "00", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
                           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
                           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
                           "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
                           "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
    EXPECT_FALSE(parse_traceparent(text)) << text;
}

TEST(TraceContext, bytes_come_back_as_they_were_written) {
  const auto trace = parse_traceparent(example);
  ASSERT_TRUE(trace);
  std::array<std::byte, trace_context_bytes> bytes{};
  encode(*trace, bytes.data());
  EXPECT_EQ(decode_trace(bytes), *trace);
}

}  // namespace
}  // namespace weir::rpc
