// Large messages that are offered in parts: copied, fetched and assembled piece by piece.
#include <gtest/gtest.h>

#include <string>

#include "tests/rdma/channel_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::ChannelTest;
using testing_support::pattern;

constexpr std::size_t piece = 100'000;
constexpr ChannelSettings in_pieces = {.piece_bytes = piece};

struct ChannelPartsTest : ChannelTest {
  // Sends all of it, as room permits.
  void send_all(Channel& from, const std::string& bytes) {
    std::size_t sent = 0;
    run_until([&] {
      sent += from.try_send_some(asio::buffer(bytes) + sent);
      return sent == bytes.size() || from.end();
    });
  }
};

TEST_F(ChannelPartsTest, a_message_sent_in_parts_arrives_as_one) {
  auto [client, server] = channel_pair(in_pieces);
  for (const std::size_t bytes : {piece + 1, 10 * piece, 10 * piece + 1}) {
    const auto before = client.counters();
    const std::string data = pattern(bytes);
    send_all(client, data);
    EXPECT_EQ(receive_text(server), data);
    EXPECT_EQ(client.counters().offered_parts - before.offered_parts, (bytes + piece - 1) / piece);
    EXPECT_EQ(client.counters().messages_sent - before.messages_sent, 1u);
  }
  EXPECT_EQ(server.counters().messages_received, 3u);
}

TEST_F(ChannelPartsTest, a_message_of_one_piece_or_none_needs_no_parts) {
  auto [client, server] = channel_pair(in_pieces);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, std::size_t{20'000}, piece}) {
    const std::string data = pattern(bytes);
    EXPECT_EQ(client.try_send_some(asio::buffer(data)), bytes);
    EXPECT_EQ(receive_text(server), data);
  }
  EXPECT_EQ(client.counters().offered_parts, 0u);
}

// The room needed is that of the offers the peer takes, however long the message is.
TEST_F(ChannelPartsTest, parts_take_no_more_of_the_senders_memory_than_the_offers_outstanding) {
  auto [client, server] = channel_pair(in_pieces);
  const std::string data = pattern(50 * piece);
  std::size_t sent = 0, most = 0;
  run_until([&, &sender = client] {
    sent += sender.try_send_some(asio::buffer(data) + sent);
    most = std::max(most, sender.memory().sending_bytes);
    return sent == data.size();
  });
  EXPECT_LE(most, ChannelSettings{}.rendezvous_depth * std::size_t{1 << 17} + (64 << 10))
      << "a block of 128 KiB each";
  EXPECT_EQ(receive_text(server), data);
}

TEST_F(ChannelPartsTest, nothing_else_is_taken_before_the_last_part_and_goes_out_after_it) {
  auto [client, server] = channel_pair(in_pieces);
  const std::string data = pattern(20 * piece);
  const std::size_t begun = client.try_send_some(asio::buffer(data));
  ASSERT_GT(begun, 0u);
  ASSERT_LT(begun, data.size());
  EXPECT_FALSE(client.try_send(asio::buffer("no", 2)));
  bool sent = false;
  client.async_send(asio::buffer("waits", 5), [&](std::error_code failed) { sent = !failed; });
  std::size_t all = begun;
  run_until([&, &sender = client] {
    all += sender.try_send_some(asio::buffer(data) + all);
    return all == data.size();
  });
  EXPECT_EQ(receive_text(server), data);
  EXPECT_EQ(receive_text(server), "waits");
  run_until([&] { return sent; });
}

TEST_F(ChannelPartsTest, an_operation_sends_what_is_long_in_parts_from_where_it_lies) {
  auto [client, server] = channel_pair(in_pieces);
  const std::string data = pattern(30 * piece);
  bool sent = false;
  client.async_send(asio::buffer(data), [&](std::error_code failed) { sent = !failed; });
  EXPECT_EQ(receive_text(server), data);
  run_until([&] { return sent; });
  EXPECT_EQ(client.counters().offered_parts, 30u);
}

TEST_F(ChannelPartsTest, a_message_cut_off_by_the_senders_end_is_not_received) {
  auto [client, server] = channel_pair(in_pieces);
  ASSERT_TRUE(client.try_send(asio::buffer("before", 6)));
  ASSERT_LT(client.try_send_some(asio::buffer(pattern(20 * piece))), 20 * piece);
  client.close();
  EXPECT_EQ(receive_text(server), "before");
  run_until([&, &receiver = server] { return static_cast<bool>(receiver.end()); });
  EXPECT_FALSE(server.try_receive());
  EXPECT_EQ(server.memory().held_bytes, 0u);
}

}  // namespace
}  // namespace weir::rdma
