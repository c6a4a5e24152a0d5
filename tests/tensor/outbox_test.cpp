#include "tensor/link/outbox.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weir::tensor {
namespace {

struct OutboxTest : testing::Test {
  std::vector<std::byte> memory = std::vector<std::byte>(100);
  Outbox outbox;

  // Pieces of these sizes, with a byte between them so that they are not adjacent.
  Transfer transfer_of(std::initializer_list<std::size_t> sizes, std::uint32_t index = 0) {
    std::vector<Source::Piece> pieces;
    std::size_t at = 0;
    for (const std::size_t size : sizes) {
      pieces.push_back(std::span(memory).subspan(at, size));
      at += size + 1;
    }
    return {.source = std::make_shared<const Source>(std::move(pieces), nullptr),
            .to = {},
            .record = {.index = index}};
  }
};

// The next parts as "piece:bytes".
std::string taken(Outgoing& outgoing, std::size_t parts, std::size_t most_bytes) {
  std::vector<Outgoing::Part> room(parts);
  std::string said;
  for (const Outgoing::Part& each : outgoing.take(room, most_bytes))
    said += std::to_string(each.piece) + ":" + std::to_string(each.bytes.size()) + " ";
  return said;
}

TEST_F(OutboxTest, a_transfer_goes_in_parts_of_as_many_bytes_as_asked_for) {
  Outgoing outgoing(transfer_of({10, 20, 5}));
  EXPECT_EQ(taken(outgoing, 8, 15), "0:10 1:5 ");
  EXPECT_EQ(outgoing.sent(), 15U);
  EXPECT_EQ(taken(outgoing, 8, 15), "1:15 ");
  EXPECT_FALSE(outgoing.all_sent());
  EXPECT_EQ(taken(outgoing, 8, 15), "2:5 ");
  EXPECT_TRUE(outgoing.all_sent());
  EXPECT_EQ(taken(outgoing, 8, 15), "");
}

TEST_F(OutboxTest, a_transfer_goes_in_as_many_parts_as_there_is_room_for) {
  Outgoing outgoing(transfer_of({10, 20, 5}));
  EXPECT_EQ(taken(outgoing, 2, 100), "0:10 1:20 ");
  EXPECT_EQ(taken(outgoing, 2, 100), "2:5 ");
  EXPECT_TRUE(outgoing.all_sent());
}

TEST_F(OutboxTest, a_transfer_of_nothing_is_out_at_once) {
  EXPECT_TRUE(Outgoing(transfer_of({})).all_sent());
}

TEST_F(OutboxTest, takes_1024_messages_and_gives_them_back_in_order) {
  for (std::uint32_t i = 0; i < Outbox::most_messages; ++i) ASSERT_EQ(outbox.put(wire::Done{i}), "");
  EXPECT_NE(outbox.put(wire::Done{1}), "");
  std::uint32_t next = 0;
  for (; outbox.has_frame(); outbox.frame_is_out())
    for (std::span<const std::byte> frame = outbox.frame(); !frame.empty();)
      ASSERT_EQ(wire::take_message(frame).value(), wire::Message(wire::Done{next++}));
  EXPECT_EQ(next, Outbox::most_messages);
  EXPECT_EQ(outbox.put(wire::Done{1}), "");
}

TEST_F(OutboxTest, messages_that_wait_share_frames_of_at_most_4096_bytes) {
  const std::size_t fit = wire::message_bytes / wire::encode(wire::Done{}).size();
  for (std::uint32_t i = 0; i < fit; ++i) ASSERT_EQ(outbox.put(wire::Done{i}), "");
  EXPECT_EQ(outbox.frame().size(), wire::message_bytes);
  ASSERT_EQ(outbox.put(wire::Done{9}), "");
  outbox.frame_is_out();
  EXPECT_EQ(outbox.frame(), wire::encode(wire::Done{9}));
  ASSERT_EQ(outbox.put(wire::ErrorStatus{1, Errc::ok, 0, std::string(1000, 'x')}), "");
  EXPECT_GT(outbox.frame().size(), 1000U);
  outbox.frame_is_out();
  EXPECT_TRUE(outbox.empty());
}

TEST_F(OutboxTest, takes_two_transfers_a_slot_and_one_that_is_under_way) {
  for (std::size_t i = 0; i <= 2 * wire::slots; ++i) ASSERT_EQ(outbox.put(transfer_of({1})), "");
  EXPECT_NE(outbox.put(transfer_of({1})), "");
  outbox.transfer_is_out();
  EXPECT_EQ(outbox.put(transfer_of({1})), "");
}

TEST_F(OutboxTest, messages_stay_when_transfers_are_dropped) {
  ASSERT_EQ(outbox.put(wire::Done{1}), "");
  ASSERT_EQ(outbox.put(transfer_of({1}, 7)), "");
  EXPECT_EQ(outbox.transfer().transfer().record.index, 7U);
  outbox.drop_transfers();
  EXPECT_FALSE(outbox.has_transfer());
  EXPECT_FALSE(outbox.empty());
  outbox.clear();
  EXPECT_TRUE(outbox.empty());
}

}  // namespace
}  // namespace weir::tensor
