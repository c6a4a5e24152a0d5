// The memory that channels use, which channels stop when there is no more, and when it is freed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::pattern;
using testing_support::text;

class ChannelMemoryTest : public testing_support::ChannelTest {};

TEST_F(ChannelMemoryTest, a_reader_that_keeps_messages_stops_the_sender_and_memory_is_bounded) {
  const ChannelSettings settings = {
      .block_bytes = 1024, .receive_blocks = 10, .send_blocks = 4, .held_bytes = 8192, .signal_interval = 2};
  auto [client, server] = channel_pair(settings, settings);
  const std::string data = pattern(900);
  std::vector<Message> kept;
  std::size_t sent = 0, idle = 0;
  while (idle < 200) {
    if (client.try_send(asio::buffer(data))) {
      ++sent;
      idle = 0;
    } else {
      ++idle;
    }
    while (auto message = server.try_receive()) kept.push_back(std::move(*message));
    io.poll();
    ASSERT_LT(sent, 1000u) << "never stopped";
  }
  EXPECT_GT(client.counters().stalls, 0u);
  const ChannelMemory memory = server.memory();
  EXPECT_LE(memory.held_bytes, settings.held_bytes + settings.receive_blocks * 4096u);
  EXPECT_LE(memory.total(), settings.held_bytes + 3 * settings.receive_blocks * 4096u)
      << "pool blocks are pages";

  kept.clear();
  run_until([&, &receiver = server, &sender = client] {
    while (receiver.try_receive()) {
    }
    return sender.try_send(asio::buffer(data));
  });
  EXPECT_FALSE(client.end()) << client.error().what;
}

TEST_F(ChannelMemoryTest, shrink_gives_back_what_is_kept_for_reuse) {
  auto [client, server] = channel_pair();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(client.try_send(asio::buffer(pattern(10'000))));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(receive_text(server).size(), 10'000u);
  const std::string large = pattern(500'000);
  ASSERT_TRUE(client.try_send(asio::buffer(large)));
  receive_text(server);
  run_until([&, &sender = client] { return sender.memory().kept_bytes > 0; });
  client.shrink();
  EXPECT_EQ(client.memory().kept_bytes, 0u);
  ASSERT_TRUE(client.try_send(asio::buffer(large)));
  EXPECT_EQ(receive_text(server), large);
}

TEST_F(ChannelMemoryTest, messages_and_buffers_outlive_their_channel_and_memory_goes_back) {
  std::optional<Message> message;
  Buffer buffer;
  {
    auto [client, server] = channel_pair();
    ASSERT_TRUE(client.try_send(asio::buffer("kept", 4)));
    run_until([&, &receiver = server] { return (message = receiver.try_receive()).has_value(); });
    buffer = std::move(*client.allocate(100'000));
  }
  run_until([&] { return engine->stats().connections == 0; });
  EXPECT_EQ(text(*message), "kept");
  EXPECT_EQ(engine->stats().pool.blocks, 2u) << "one each";
  message.reset();
  buffer = {};
  EXPECT_EQ(engine->stats().pool.blocks, 0u);
}

TEST_F(ChannelMemoryTest, a_pool_at_its_cap_fails_who_asks_and_others_go_on) {
  auto [client, server] = channel_pair({}, {.max_message_bytes = 1 << 30});
  const auto refused = client.allocate((std::size_t{1} << 30) + 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::message_too_long);
  std::vector<Buffer> all;
  for (;;) {
    auto more = client.allocate(std::size_t{1} << 30);
    if (!more) {
      EXPECT_EQ(more.error().code, Errc::memory_limit) << more.error().what;
      break;
    }
    all.push_back(std::move(*more));
    ASSERT_LT(all.size(), 20u);
  }
  ASSERT_TRUE(client.try_send(asio::buffer("still", 5)));
  EXPECT_EQ(receive_text(server), "still");
}

}  // namespace
}  // namespace weir::rdma
