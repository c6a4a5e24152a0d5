// Channels that share their receives: more channels post no more receives, too few receives only make peers
// wait, a channel that holds messages stops only itself, and the end of a channel loses no receive.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::ChannelTest;
using testing_support::pattern;
using testing_support::text;

constexpr ChannelSettings sharing = {.shared_receives = true};
constexpr std::uint32_t few_receives = 16;

struct ChannelSharedTest : ChannelTest {
  void SetUp() override {
    EngineSettings settings;
    settings.shared_receive_blocks = few_receives;
    Result<Engine*> opened = Engine::open(io, testing_support::test_provider(), settings);
    ASSERT_TRUE(opened) << opened.error().what;
    engine = *opened;
  }
  struct Pair {
    Channel client, server;
  };
  // The servers share receives; the clients have their own.
  std::deque<Pair> pairs(std::size_t count, const ChannelSettings& settings = sharing) {
    std::deque<Pair> made;
    ChannelAcceptor acceptor = listen_channel(settings);
    for (std::size_t i = 0; i < count; ++i) {
      auto [client, server] = connect_channels(acceptor);
      made.push_back({std::move(client), std::move(server)});
    }
    return made;
  }
  SharedReceivesStats shared() const { return engine->stats().shared; }
  std::size_t all_posted() const { return std::size_t{few_receives} * ChannelSettings{}.block_bytes; }
};

TEST_F(ChannelSharedTest, what_is_posted_does_not_grow_with_the_channels) {
  for (const std::size_t count : {1u, 10u, 100u}) {
    auto channels = pairs(count);
    EXPECT_EQ(shared().channels, count);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_TRUE(channels[i].client.try_send(asio::buffer(pattern(1000, i))));
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(receive_text(channels[i].server), pattern(1000, i));
      EXPECT_EQ(channels[i].server.counters().shared_frames, 1u);
      EXPECT_EQ(channels[i].server.memory().total(), 0u) << "nothing of its own";
    }
    EXPECT_EQ(shared().posted_bytes, all_posted());
  }
}

struct RnrRow {
  std::chrono::microseconds wanted, told;
};

TEST_F(ChannelSharedTest, the_device_is_told_how_long_peers_wait_for_receives) {
  using std::chrono::microseconds;
  for (const RnrRow& row : {RnrRow{microseconds(10), microseconds(10)},
                            {microseconds(11), microseconds(20)},
                            {ChannelSettings().rnr_wait, microseconds(160)},
                            {microseconds(655'360), microseconds(655'360)}}) {
    ChannelSettings settings = sharing;
    settings.rnr_wait = row.wanted;
    ChannelAcceptor acceptor = listen_channel(settings);
    auto [client, server] = connect_channels(acceptor, settings);
    EXPECT_EQ(server.rnr_wait(), row.told) << row.wanted.count();
    EXPECT_EQ(client.rnr_wait(), row.told) << row.wanted.count();
  }
  ChannelAcceptor acceptor = listen_channel();
  auto [client, server] = connect_channels(acceptor, ChannelSettings());
  EXPECT_EQ(server.rnr_wait(), microseconds(655'360)) << "without shared receives RNR is the end anyway";
}

// Fifty frames each exceed the receives and the window, so some meet RNR.
TEST_F(ChannelSharedTest, more_frames_than_receives_arrive_whole_and_in_order) {
  constexpr std::size_t count = 8, messages = 50;
  auto channels = pairs(count);
  std::vector<std::size_t> sent(count), received(count);
  const auto send_more = [&] {
    for (std::size_t i = 0; i < count; ++i)
      while (sent[i] < messages && channels[i].client.try_send(asio::buffer(pattern(9000, sent[i]))))
        ++sent[i];
  };
  send_more();  // before anyone has polled
  EXPECT_GT(count * sent[0], few_receives);
  run_until([&] {
    send_more();
    std::size_t done = 0;
    for (std::size_t i = 0; i < count; ++i) {
      while (auto message = channels[i].server.try_receive()) {
        EXPECT_EQ(text(*message), pattern(9000, received[i])) << i;
        ++received[i];
      }
      EXPECT_FALSE(channels[i].server.end()) << channels[i].server.error().what;
      done += received[i] == messages;
    }
    return done == count;
  });
}

TEST_F(ChannelSharedTest, who_holds_messages_stops_its_own_sender_and_nobody_elses) {
  auto channels = pairs(2, {.held_bytes = 1 << 16, .shared_receives = true});
  Pair& holder = channels[0];
  Pair& other = channels[1];
  std::vector<Message> held;
  std::size_t idle = 0;
  while (idle < 200) {
    idle = holder.client.try_send(asio::buffer(pattern(15'000))) ? 0 : idle + 1;
    while (auto message = holder.server.try_receive()) held.push_back(std::move(*message));
    io.poll();
    ASSERT_LT(held.size(), 1000u) << "never stopped";
  }
  EXPECT_GT(held.size(), few_receives) << "others took the place of those that are held";
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(other.client.try_send(asio::buffer(pattern(15'000, i))));
    EXPECT_EQ(receive_text(other.server), pattern(15'000, i));
  }
  held.clear();
  run_until([&] {
    while (holder.server.try_receive()) {
    }
    return holder.client.try_send(asio::buffer(pattern(15'000)));
  });
}

TEST_F(ChannelSharedTest, channels_that_end_with_messages_unread_lose_no_receive) {
  for (int round = 0; round < 10; ++round) {
    auto channels = pairs(4);
    for (Pair& each : channels) {
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(each.client.try_send(asio::buffer(pattern(2000))));
      if (round % 2 == 0) each.server.close();  // before it has polled
    }
    channels.clear();
    run_until([&] { return engine->stats().connections == 0; });
  }
  auto [client, server] = connect_channels(*std::make_unique<ChannelAcceptor>(listen_channel(sharing)));
  ASSERT_TRUE(client.try_send(asio::buffer("still", 5)));
  EXPECT_EQ(receive_text(server), "still");
  EXPECT_EQ(shared().posted_bytes, all_posted());
  EXPECT_EQ(shared().channels, 1u);
}

TEST_F(ChannelSharedTest, a_message_outlives_its_channel_and_goes_back_to_the_others) {
  std::optional<Message> kept;
  {
    auto channels = pairs(1);
    ASSERT_TRUE(channels[0].client.try_send(asio::buffer("kept", 4)));
    run_until([&] { return (kept = channels[0].server.try_receive()).has_value(); });
  }
  run_until([&] { return engine->stats().connections == 0; });
  EXPECT_EQ(text(*kept), "kept");
  const std::size_t before = shared().spare_bytes;
  kept.reset();
  EXPECT_EQ(shared().spare_bytes, before + ChannelSettings{}.block_bytes);
}

}  // namespace
}  // namespace weir::rdma
