// Messages that the application keeps for good, and messages that it forwards without a copy.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::ChannelTest;
using testing_support::pattern;
using testing_support::text;

constexpr std::size_t large = 100'000;

struct ChannelKeepTest : ChannelTest {
  Message receive(Channel& from) {
    std::optional<Message> got;
    run_until([&] { return (got = from.try_receive()).has_value() || from.end(); });
    if (!got) throw std::runtime_error(from.error().what);
    return std::move(*got);
  }
  void send(Channel& from, const std::string& bytes) {
    run_until([&] { return from.try_send(asio::buffer(bytes)); });
  }
};

TEST_F(ChannelKeepTest, kept_messages_do_not_hold_the_sender_up) {
  auto [client, server] = channel_pair({}, {.held_bytes = 1 << 16});
  std::vector<Message> kept;
  for (std::size_t i = 0; i < 20; ++i) {
    send(client, pattern(large, i));
    kept.push_back(receive(server));
    ASSERT_TRUE(kept.back().keep());
    EXPECT_EQ(server.memory().held_bytes, 0u);
  }
  EXPECT_GE(server.memory().lent_bytes, kept.size() * large);
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(text(kept[i]), pattern(large, i));
  kept.clear();
  EXPECT_EQ(server.memory().lent_bytes, 0u);
}

TEST_F(ChannelKeepTest, a_message_that_shares_its_block_is_not_kept) {
  auto [client, server] = channel_pair();
  client.cork();
  send(client, "one");
  send(client, "two");
  client.uncork();
  Message one = receive(server);
  Message two = receive(server);
  EXPECT_FALSE(one.keep());
  one.reset();
  EXPECT_TRUE(two.keep());
  EXPECT_EQ(text(two), "two");
}

TEST_F(ChannelKeepTest, a_kept_message_outlives_its_io_context) {
  Message kept;
  {
    asio::io_context other;
    auto opened = Engine::open(other, testing_support::test_provider());
    ASSERT_TRUE(opened) << opened.error().what;
    ChannelAcceptor acceptor = listen_channel();
    Channel client(**opened);
    std::optional<Channel> server;
    std::optional<Message> got;
    acceptor.async_accept([&](std::error_code failed, Channel accepted) {
      ASSERT_FALSE(failed) << failed.message();
      server.emplace(std::move(accepted));
    });
    async_connect(client, acceptor.local_endpoint(), ChannelSettings(),
                  [&](std::error_code failed) { ASSERT_FALSE(failed) << failed.message(); });
    const std::string sent = pattern(large);
    run_until([&] {
      other.poll();
      return server.has_value() && server->try_send(asio::buffer(sent));
    });
    run_until([&] {
      other.poll();
      return (got = client.try_receive()).has_value() || client.end();
    });
    ASSERT_TRUE(got) << client.error().what;
    ASSERT_TRUE(got->keep());
    kept = std::move(*got);
  }
  EXPECT_EQ(text(kept), pattern(large));
}

TEST_F(ChannelKeepTest, a_received_message_is_sent_on_without_a_copy) {
  auto [client, server] = channel_pair();
  send(client, pattern(large));
  Message got = receive(server);
  Buffer again = server.share(got);
  ASSERT_TRUE(again);
  EXPECT_EQ(static_cast<const std::byte*>(again.bytes().data()), got.data());
  ASSERT_TRUE(server.try_send(again));
  got.reset();
  EXPECT_EQ(receive_text(client), pattern(large));
  EXPECT_EQ(server.counters().copied_bytes, 0u);
  EXPECT_EQ(server.counters().zero_copy_sends, 1u);
}

TEST_F(ChannelKeepTest, a_shared_buffer_may_be_sent_again_and_is_nobody_elses_meanwhile) {
  auto [client, server] = channel_pair();
  Buffer kept = client.allocate(large).value();
  std::memcpy(kept.bytes().data(), pattern(large).data(), large);
  for (int i = 0; i < 3; ++i) {
    Buffer again = client.share(kept, large);
    ASSERT_TRUE(again);
    ASSERT_TRUE(client.try_send(again));
    EXPECT_EQ(receive_text(server), pattern(large));
    Buffer other = client.allocate(large).value();
    EXPECT_NE(other.bytes().data(), kept.bytes().data());
  }
  EXPECT_EQ(client.counters().copied_bytes, 0u);
}

TEST_F(ChannelKeepTest, a_buffer_is_not_shared_as_more_than_what_is_on_its_way_or_by_another_channel) {
  auto [client, server] = channel_pair();
  Buffer kept = client.allocate(2 * large).value();
  EXPECT_FALSE(client.share(Buffer(), 0));
  EXPECT_FALSE(server.share(kept, large));
  EXPECT_FALSE(client.share(kept, 2 * large + 1));
  Buffer less = client.share(kept, large);
  ASSERT_TRUE(client.try_send(less));
  EXPECT_TRUE(client.share(kept, large));
  EXPECT_FALSE(client.share(kept, 2 * large)) << "the peer may be reading";
  receive(server);
  run_until([&] { return static_cast<bool>(client.share(kept, 2 * large)); });
}

TEST_F(ChannelKeepTest, a_message_of_another_channel_is_not_shared) {
  auto [client, server] = channel_pair();
  send(client, pattern(large));
  const Message got = receive(server);
  EXPECT_FALSE(client.share(got));
  EXPECT_FALSE(client.share(Message()));
}

}  // namespace
}  // namespace weir::rdma
