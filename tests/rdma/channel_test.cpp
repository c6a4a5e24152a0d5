// Channels end to end: whole messages in order by every path of a message, what each technique counts, and
// how channels affect an event loop. channel_memory_test.cpp tests their memory.
#include <gtest/gtest.h>

#include <asio/co_spawn.hpp>
#include <asio/use_awaitable.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::ChannelTest;
using testing_support::pattern;
using testing_support::text;

constexpr ChannelSettings no_rendezvous = {.rendezvous_bytes = 0};
constexpr ChannelSettings small = {.block_bytes = 1024,
                                   .receive_blocks = 10,
                                   .send_blocks = 4,
                                   .held_bytes = 8192,
                                   .rendezvous_bytes = 20'000,
                                   .signal_interval = 2};

struct Way {
  const char* name;
  ChannelSettings settings;
};
const std::vector<Way>& ways() {
  static const std::vector<Way> table = {
      {"defaults", {}},
      {"split_only", no_rendezvous},
      {"rendezvous_early", {.rendezvous_bytes = 300}},
      {"nothing_inline", {.inline_bytes = 0}},
      {"everything_signalled", {.signal_interval = 1}},
      {"never_merged", {.merge = false}},
      {"any_completion_wakes", {.solicited_only = false}},
      {"small_blocks", small},
      {"in_pieces", {.rendezvous_bytes = 300, .piece_bytes = 7000}},
      {"credits_apart", {.credits_ride = false}},
      {"blocks_not_kept", {.keep_blocks = false}},
      {"receives_shared", {.shared_receives = true}},
      {"one_offer", {.rendezvous_bytes = 4096, .rendezvous_depth = 1}},
  };
  return table;
}

struct EveryWay : ChannelTest, testing::WithParamInterface<std::size_t> {};

TEST_P(EveryWay, messages_of_all_sizes_arrive_whole_and_in_order) {
  const ChannelSettings& settings = ways()[GetParam()].settings;
  auto [client, server] = channel_pair(settings, settings);
  const std::vector<std::size_t> sizes = {0,      1,       7,    8,       100,    256,      1008,
                                          1016,   1017,    4000, 16'376,  16'377, 20'000,   65'535,
                                          65'536, 100'000, 5,    300'000, 3,      1'500'000};
  std::vector<std::string> sent;
  for (const std::size_t bytes : sizes) sent.push_back(pattern(bytes, sent.size()));
  std::size_t next = 0, completed = 0;
  for (const std::string& each : sent)
    client.async_send(asio::buffer(each), [&](std::error_code failed) {
      EXPECT_FALSE(failed) << failed.message();
      ++completed;
    });
  run_until([&, &receiver = server] {
    while (auto message = receiver.try_receive()) {
      EXPECT_EQ(text(*message), sent[next]) << "message " << next;
      ++next;
    }
    return next == sent.size() || receiver.end();
  });
  EXPECT_EQ(next, sent.size()) << server.error().what;
  run_until([&] { return completed == sent.size(); });
  EXPECT_EQ(client.counters().messages_sent, sent.size());
  EXPECT_EQ(server.counters().messages_received, sent.size());
}

TEST_P(EveryWay, both_ends_send_at_once_and_nobody_waits_for_ever) {
  const ChannelSettings& settings = ways()[GetParam()].settings;
  auto [client, server] = channel_pair(settings, settings);
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr std::size_t count = 400;
  struct End {
    Channel& channel;
    std::mt19937 random;
    std::size_t sent = 0, got = 0, bytes_sent = 0, bytes_got = 0;
  };
  End ends[] = {{client, std::mt19937(seed)}, {server, std::mt19937(seed + 1)}};
  const std::string data = pattern(100'000);
  const auto go_on = [&](End& end) {
    while (auto message = end.channel.try_receive()) {
      ++end.got;
      end.bytes_got += message->size();
      EXPECT_EQ(text(*message), data.substr(0, message->size()));
    }
    while (end.sent < count) {
      const std::size_t bytes = end.random() % (end.random() % 20 == 0 ? data.size() : 500);
      if (!end.channel.try_send(asio::buffer(data.data(), bytes))) return;
      ++end.sent;
      end.bytes_sent += bytes;
    }
  };
  for (End& end : ends) {
    end.channel.on_readable([&] { go_on(end); });
    end.channel.on_writable([&] { go_on(end); });
  }
  go_on(ends[0]);
  run_until([&] { return (ends[0].got == count && ends[1].got == count) || client.end() || server.end(); });
  EXPECT_FALSE(client.end()) << client.error().what;
  EXPECT_EQ(ends[0].bytes_sent, ends[1].bytes_got);
  EXPECT_EQ(ends[1].bytes_sent, ends[0].bytes_got);
}

INSTANTIATE_TEST_SUITE_P(Ways, EveryWay, testing::Range<std::size_t>(0, ways().size()),
                         [](const auto& each) { return ways()[each.param].name; });

// --- what each technique does

TEST_F(ChannelTest, a_small_message_is_inline_solicited_and_alone) {
  auto [client, server] = channel_pair();
  ASSERT_TRUE(client.try_send(asio::buffer("small", 5)));
  EXPECT_EQ(receive_text(server), "small");
  const ChannelCounters& counted = client.counters();
  EXPECT_EQ(counted.frames_sent, 1u);
  EXPECT_EQ(counted.inline_frames, 1u);
  EXPECT_EQ(counted.solicited, 1u);
  EXPECT_EQ(counted.signalled, 0u) << "one of eight";
  EXPECT_EQ(counted.merged_messages, 0u) << "never delayed while there is room";
}

TEST_F(ChannelTest, messages_merge_while_the_window_is_shut_and_only_then) {
  auto [client, server] = channel_pair();
  // The engine does not run, so no credits come back.
  int taken = 0;
  while (taken < 200 && client.try_send(asio::buffer("0123456789", 10))) ++taken;
  EXPECT_EQ(taken, 200);
  EXPECT_EQ(client.counters().frames_sent, 25u) << "the window";
  EXPECT_EQ(client.counters().merged_messages, 200u - 25 - 1) << "one began the open frame";
  int got = 0;
  run_until([&, &receiver = server] {
    while (receiver.try_receive()) ++got;
    return got == taken;
  });
  EXPECT_EQ(client.counters().frames_sent, 26u);
}

TEST_F(ChannelTest, corked_messages_share_frames_and_wake_the_peer_once) {
  auto [client, server] = channel_pair();
  client.cork();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.try_send(asio::buffer("0123456789", 10)));
  EXPECT_EQ(client.counters().frames_sent, 0u);
  client.uncork();
  EXPECT_EQ(client.counters().frames_sent, 1u);
  EXPECT_EQ(client.counters().solicited, 1u);
  int got = 0;
  run_until([&, &receiver = server] {
    while (receiver.try_receive()) ++got;
    return got == 100;
  });
}

// The peer fetches it while the next one is being made.
TEST_F(ChannelTest, a_large_message_is_offered_at_once_although_corked) {
  auto [client, server] = channel_pair();
  auto buffer = client.allocate(100'000);
  ASSERT_TRUE(buffer);
  client.cork();
  ASSERT_TRUE(client.try_send(asio::buffer("small", 5)));
  EXPECT_EQ(client.counters().frames_sent, 0u);
  ASSERT_TRUE(client.try_send(*buffer));
  EXPECT_EQ(client.counters().frames_sent, 1u) << "with what had been sent before";
  EXPECT_EQ(receive_text(server), "small");
  EXPECT_EQ(receive_text(server).size(), 100'000u);
  client.uncork();
  EXPECT_EQ(client.counters().frames_sent, 1u);
}

TEST_F(ChannelTest, only_every_interval_th_request_is_signalled) {
  auto [client, server] = channel_pair({.signal_interval = 8});
  for (int i = 0; i < 800; ++i) {
    ASSERT_TRUE(client.try_send(asio::buffer("x", 1)));
    EXPECT_EQ(receive_text(server), "x");
  }
  EXPECT_LE(client.counters().signalled, 101u);
}

TEST_F(ChannelTest, window_rides_on_answers_and_no_acknowledgement_is_sent) {
  auto [client, server] = channel_pair();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(client.try_send(asio::buffer("ping", 4)));
    EXPECT_EQ(receive_text(server), "ping");
    ASSERT_TRUE(server.try_send(asio::buffer("pong", 4)));
    EXPECT_EQ(receive_text(client), "pong");
  }
  EXPECT_EQ(server.counters().acks_sent, 0u);
  EXPECT_GE(server.counters().credits_ridden, 990u);
}

TEST_F(ChannelTest, one_way_traffic_is_acknowledged_by_the_half_window) {
  auto [client, server] = channel_pair();
  for (int i = 0; i < 1000; ++i) {
    run_until([&, &sender = client] { return sender.try_send(asio::buffer("x", 1)); });
    EXPECT_EQ(receive_text(server), "x");
  }
  EXPECT_GT(server.counters().acks_sent, 0u);
  EXPECT_LE(server.counters().acks_sent, 1000u / 13 + 1);
}

TEST_F(ChannelTest, a_buffer_is_sent_without_a_copy) {
  auto [client, server] = channel_pair();
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{10'000}, std::size_t{1'000'000}}) {
    SCOPED_TRACE(bytes);
    const std::uint64_t copied = client.counters().copied_bytes,
                        zero_copies = client.counters().zero_copy_sends;
    auto buffer = client.allocate(bytes);
    ASSERT_TRUE(buffer) << buffer.error().what;
    const std::string data = pattern(bytes);
    std::memcpy(buffer->bytes().data(), data.data(), bytes);
    ASSERT_TRUE(client.try_send(*buffer));
    EXPECT_FALSE(*buffer) << "taken";
    EXPECT_EQ(receive_text(server), data);
    EXPECT_EQ(client.counters().copied_bytes, copied);
    EXPECT_EQ(client.counters().zero_copy_sends, zero_copies + 1);
    EXPECT_EQ(server.counters().copied_bytes, 0u);
  }
}

TEST_F(ChannelTest, a_spare_buffer_is_had_for_large_messages_until_half_of_the_pool_is_used) {
  if (testing_support::test_provider().kind() != Provider::Kind::weir)
    GTEST_SKIP() << "a device that pins memory would have to have gigabytes of it";
  auto [client, server] = channel_pair({}, {.max_message_bytes = 1 << 30});
  EXPECT_FALSE(client.allocate_spare(1000)) << "no gain for a message that fits into a frame";
  EXPECT_FALSE(client.allocate_spare((std::size_t{1} << 30) + 1)) << "the peer would not take it";
  std::vector<Buffer> all;
  while (Buffer one = client.allocate_spare(std::size_t{1} << 30)) all.push_back(std::move(one));
  EXPECT_GE(all.size(), 4u) << "of the 8 GiB that a pool may have";
  EXPECT_LE(all.size(), 5u);
  EXPECT_TRUE(client.allocate(std::size_t{1} << 30)) << "for who needs it there is more";
  all.clear();
  client.shrink();
  EXPECT_TRUE(client.allocate_spare(100'000));
}

TEST_F(ChannelTest, a_large_message_is_fetched_by_one_read) {
  auto [client, server] = channel_pair();
  const std::string data = pattern(1'000'000);
  ASSERT_TRUE(client.try_send(asio::buffer(data)));
  EXPECT_EQ(receive_text(server), data);
  EXPECT_EQ(client.counters().offers, 1u);
  EXPECT_EQ(server.counters().fetches, 1u);
  EXPECT_EQ(client.counters().frames_sent, 1u);
  run_until([&, &sender = client] { return sender.memory().sending_bytes == 0; });
}

// --- in an event loop

TEST_F(ChannelTest, an_idle_engine_sleeps_and_the_last_of_a_burst_wakes_it) {
  auto [client, server] = channel_pair();
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t sleeps = engine->stats().sleeps;
    client.cork();
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(client.try_send(asio::buffer(pattern(1000))));
    client.uncork();
    for (int i = 0; i < 40; ++i) ASSERT_EQ(receive_text(server).size(), 1000u);
    run_until([&] { return engine->stats().sleeps > sleeps; });
  }
  EXPECT_LT(client.counters().solicited, client.counters().frames_sent);
}

TEST_F(ChannelTest, coroutines_echo) {
  auto [client, server] = channel_pair();
  int echoed = 0;
  const auto echo = [](Channel channel) -> asio::awaitable<void> {
    for (;;) {
      const Message message = co_await channel.async_receive(asio::use_awaitable);
      const asio::const_buffer bytes(message.data(), message.size());
      co_await channel.async_send(bytes, asio::use_awaitable);
    }
  };
  const auto talk = [&](Channel channel) -> asio::awaitable<void> {
    for (; echoed < 50; ++echoed) {
      const std::string word = pattern(static_cast<std::size_t>(echoed) * 997);
      co_await channel.async_send(asio::buffer(word), asio::use_awaitable);
      const Message answer = co_await channel.async_receive(asio::use_awaitable);
      EXPECT_EQ(text(answer), word);
    }
  };
  bool done = false;
  std::error_code echo_ended;
  asio::co_spawn(io, echo(std::move(server)), [&](const std::exception_ptr& error) {
    try {
      if (error) std::rethrow_exception(error);
    } catch (const std::system_error& e) {
      echo_ended = e.code();
    }
  });
  asio::co_spawn(io, talk(std::move(client)), [&](const std::exception_ptr& error) {
    EXPECT_EQ(error, nullptr);
    done = true;
  });
  run_until([&] { return done && echo_ended; });
  EXPECT_EQ(echoed, 50);
  EXPECT_EQ(echo_ended, asio::error::eof);
}

}  // namespace
}  // namespace weir::rdma
