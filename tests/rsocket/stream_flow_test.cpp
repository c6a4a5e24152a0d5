// Flow control of a stream: the test carries the messages between its two ends.
#include "verbs/rsocket/stream_flow.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace weir::rsocket {
namespace {

using Arrival = StreamFlow::Arrival;
constexpr std::uint32_t ring_bytes = 64;
constexpr std::uint16_t credits = 8;
constexpr std::uint64_t ring_at = 1000;  // where the receiver's ring "lies"

Greeting greeting(std::uint32_t ring = ring_bytes, std::uint16_t of_credits = credits) {
  return {.credits = of_credits, .buffer_list = {500, 1, 2}, .first_buffer = {ring_at, 2, ring / 2}};
}

class Flow : public testing::Test {
 protected:
  Flow() { flow_.begin(greeting()); }
  Arrival data(std::uint32_t bytes) { return flow_.arrived({Op::data, bytes}); }
  StreamFlow flow_{ring_bytes, credits};
};

TEST_F(Flow, sends_into_the_buffer_of_the_greeting_and_no_more) {
  EXPECT_EQ(flow_.sendable(), 32U);
  EXPECT_EQ(flow_.take(10).address, ring_at);
  EXPECT_EQ(flow_.take(22).address, ring_at + 10);
  EXPECT_EQ(flow_.sendable(), 0U);
  EXPECT_TRUE(flow_.wants_buffer());
}

TEST_F(Flow, sends_into_given_buffers_in_the_order_of_the_list) {
  flow_.take(32);
  EXPECT_EQ(flow_.next_entry(), 1U);
  flow_.give_buffer({2000, 3, 5});
  EXPECT_EQ(flow_.next_entry(), 0U);
  EXPECT_EQ(flow_.sendable(), 5U);
  EXPECT_EQ(flow_.take(5).address, 2000U);
}

TEST_F(Flow, stops_at_the_last_credit_until_more_are_given) {
  for (int i = 0; i < credits; ++i) flow_.take(1);
  EXPECT_EQ(flow_.sendable(), 0U);
  EXPECT_FALSE(flow_.has_credit());
  EXPECT_EQ(flow_.arrived({Op::credit, credits + 1}), Arrival::credit);
  EXPECT_EQ(flow_.sendable(), 24U);
  flow_.take(1);
  EXPECT_EQ(flow_.sendable(), 0U);
}

TEST_F(Flow, believes_no_more_credits_than_the_peer_has_receives) {
  EXPECT_EQ(flow_.arrived({Op::credit, credits + 1}), Arrival::violation);
  flow_.take(1);
  EXPECT_EQ(flow_.arrived({Op::credit, 0}), Arrival::violation) << "fewer than were used";
}

TEST_F(Flow, counts_credits_around_their_16_bits) {
  for (int i = 1; i <= 70000; ++i) {
    flow_.take(1);
    EXPECT_EQ(flow_.arrived({Op::credit, static_cast<std::uint16_t>(credits + i)}), Arrival::credit) << i;
    if (flow_.wants_buffer()) flow_.give_buffer({ring_at, 2, 32});
  }
}

struct Violation {
  const char* what;
  std::vector<std::uint32_t> before;
  Immediate message;
};
class FlowViolation : public testing::TestWithParam<Violation> {};
TEST_P(FlowViolation, is_told_and_changes_nothing) {
  StreamFlow flow(ring_bytes, credits);
  flow.begin(greeting());
  for (const auto bytes : GetParam().before) ASSERT_EQ(flow.arrived({Op::data, bytes}), Arrival::data);
  const auto unread = flow.unread();
  EXPECT_EQ(flow.arrived(GetParam().message), Arrival::violation) << GetParam().what;
  EXPECT_EQ(flow.unread(), unread);
}
INSTANTIATE_TEST_SUITE_P(
    Each, FlowViolation,
    testing::Values(Violation{"nothing written", {}, {Op::data, 0}},
                    Violation{"more than the buffer given", {}, {Op::data, 33}},
                    Violation{"into a half that was not given", {32}, {Op::data, 1}},
                    Violation{"more than anything can hold", {}, {Op::data, max_immediate_value}},
                    Violation{"more messages than credits", {1, 1, 1, 1, 1, 1, 1, 1}, {Op::data, 1}},
                    Violation{"unknown control", {}, {Op::control, 3}}));

TEST_F(Flow, a_message_does_not_reach_over_the_end_of_a_half) {
  ASSERT_TRUE(flow_.grant());  // the other half
  EXPECT_EQ(data(30), Arrival::data);
  EXPECT_EQ(data(3), Arrival::violation);
  EXPECT_EQ(data(2), Arrival::data);
  EXPECT_EQ(data(32), Arrival::data);
}

TEST_F(Flow, gives_the_second_half_at_once_and_each_again_when_it_was_read) {
  const auto second = flow_.grant();
  ASSERT_TRUE(second && second->buffer);
  EXPECT_EQ(second->buffer->offset, 32U);
  EXPECT_EQ(second->buffer->peers_entry, 1U);
  EXPECT_EQ(second->credits, credits);
  EXPECT_FALSE(flow_.grant());
  data(32);
  flow_.consume(31);
  EXPECT_FALSE(flow_.grant());
  flow_.consume(1);
  const auto first = flow_.grant();
  ASSERT_TRUE(first && first->buffer);
  EXPECT_EQ(first->buffer->offset, 0U);
  EXPECT_EQ(first->buffer->peers_entry, 0U);
  EXPECT_EQ(first->credits, credits + 1);
}

TEST_F(Flow, gives_credits_when_half_of_them_were_used) {
  flow_.grant();
  for (int i = 0; i < 3; ++i) data(1);
  flow_.consume(3);
  EXPECT_FALSE(flow_.grant());
  data(1);
  flow_.consume(1);
  const auto grant = flow_.grant();
  ASSERT_TRUE(grant);
  EXPECT_FALSE(grant->buffer);
  EXPECT_EQ(grant->credits, credits + 4);
}

TEST_F(Flow, a_mapping_that_was_announced_gives_its_credit_back) {
  flow_.grant();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(flow_.arrived({Op::iomap, 0}), Arrival::iomap);
  EXPECT_TRUE(flow_.grant());
}

// Two ends, with random messages, reads and delays between them: bytes arrive once, in order, and the stream
// never comes to a halt.
TEST(FlowModel, carries_a_stream_between_two_ends) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto any = [&](std::uint32_t most) {
      return std::uniform_int_distribution<std::uint32_t>(1, most)(random);
    };
    const std::uint32_t ring = 2 * any(40);
    const auto slots = static_cast<std::uint16_t>(any(6));
    StreamFlow sender(64, 8), receiver(ring, slots);
    sender.begin(greeting(ring, slots));
    receiver.begin(greeting());
    std::vector<std::uint8_t> memory(ring);
    std::vector<RemoteBuffer> list(buffer_list_entries);
    std::deque<Immediate> to_receiver, to_sender;
    std::uint32_t sent = 0, read = 0;
    for (int idle = 0; read < 5000; ++idle) {
      ASSERT_LT(idle, 1000) << "halted after " << read;
      for (auto grant = receiver.grant(); grant; grant = receiver.grant()) {
        if (grant->buffer) {
          auto& entry = list[grant->buffer->peers_entry];
          ASSERT_EQ(entry.length, 0U) << "an entry was overwritten before its use";
          entry = {ring_at + grant->buffer->offset, 2, grant->buffer->length};
        }
        to_sender.push_back({Op::credit, grant->credits});
      }
      if (!to_sender.empty() && any(2) == 1) {
        ASSERT_EQ(sender.arrived(to_sender.front()), Arrival::credit);
        to_sender.pop_front();
      }
      if (sender.wants_buffer() && list[sender.next_entry()].length > 0) {
        const auto entry = sender.next_entry();
        sender.give_buffer(std::exchange(list[entry], {}));
      }
      if (const auto most = sender.sendable(); most > 0) {
        const auto bytes = any(most);
        const auto place = sender.take(bytes);
        for (std::uint32_t i = 0; i < bytes; ++i)
          memory.at(place.address - ring_at + i) = static_cast<std::uint8_t>(sent++);
        to_receiver.push_back({Op::data, bytes});
      }
      if (!to_receiver.empty() && any(2) == 1) {
        ASSERT_EQ(receiver.arrived(to_receiver.front()), Arrival::data);
        to_receiver.pop_front();
      }
      if (receiver.unread() > 0) {
        const auto piece = receiver.piece();
        const auto bytes = any(piece.length);
        for (std::uint32_t i = 0; i < bytes; ++i)
          ASSERT_EQ(memory.at(piece.offset + i), static_cast<std::uint8_t>(read + i)) << read + i;
        receiver.consume(bytes);
        read += bytes;
        idle = 0;
      }
    }
  }
}

}  // namespace
}  // namespace weir::rsocket
