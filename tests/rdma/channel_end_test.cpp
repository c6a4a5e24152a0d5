// What a channel refuses and how it ends: limits, cancellation, closing with work in progress.
#include <gtest/gtest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"

namespace weir::rdma {
namespace {

using testing_support::pattern;
using testing_support::text;

struct ChannelEnd : testing_support::ChannelTest {};

TEST_F(ChannelEnd, a_message_longer_than_the_peer_takes_is_refused_by_name) {
  auto [client, server] = channel_pair({}, {.max_message_bytes = 1000});
  EXPECT_EQ(client.max_message_bytes(), 1000u);
  std::optional<std::error_code> outcome;
  const std::string long_one = pattern(1001);
  client.async_send(asio::buffer(long_one), [&](std::error_code failed) { outcome = failed; });
  run_until([&] { return outcome.has_value(); });
  EXPECT_EQ(*outcome, Errc::message_too_long);
  ASSERT_TRUE(client.try_send(asio::buffer(long_one.data(), 1000)));
  EXPECT_EQ(receive_text(server).size(), 1000u);
}

TEST_F(ChannelEnd, settings_out_of_range_are_named) {
  struct Case {
    const char* name;
    ChannelSettings settings;
  };
  for (const Case& each :
       {Case{"block_bytes", {.block_bytes = 512}}, Case{"block_bytes", {.block_bytes = 3000}},
        Case{"receive_blocks", {.receive_blocks = 8}}, Case{"send_blocks", {.send_blocks = 2}},
        Case{"rendezvous_depth", {.rendezvous_depth = 17}}, Case{"inline_bytes", {.inline_bytes = 2000}},
        Case{"piece_bytes", {.piece_bytes = 4095}}, Case{"signal_interval", {.signal_interval = 9}},
        Case{"max_message_bytes", {.max_message_bytes = 0}}}) {
    SCOPED_TRACE(each.name);
    const Result<void> bad = check(each.settings);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, Errc::bad_setting);
    EXPECT_NE(bad.error().what.find(each.name), std::string::npos) << bad.error().what;
  }
}

TEST_F(ChannelEnd, what_was_sent_before_closing_is_received_and_then_the_end) {
  auto [client, server] = channel_pair();
  const std::string large = pattern(700'000);
  ASSERT_TRUE(client.try_send(asio::buffer("first", 5)));
  ASSERT_TRUE(client.try_send(asio::buffer(large)));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.try_send(asio::buffer("x", 1)));
  client.close();
  EXPECT_EQ(receive_text(server), "first");
  EXPECT_EQ(receive_text(server), large);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(receive_text(server), "x");
  run_until([&, &receiver = server] { return static_cast<bool>(receiver.end()); });
  EXPECT_EQ(server.end(), asio::error::eof) << server.error().what;
  std::optional<std::error_code> outcome;
  server.async_receive([&](std::error_code failed, Message) { outcome = failed; });
  run_until([&] { return outcome.has_value(); });
  EXPECT_EQ(*outcome, asio::error::eof);
}

TEST_F(ChannelEnd, all_that_waits_completes_when_the_channel_closes) {
  const ChannelSettings shallow = {
      .block_bytes = 1024, .receive_blocks = 10, .send_blocks = 4, .held_bytes = 8192, .signal_interval = 2};
  auto [client, server] = channel_pair(shallow, shallow);
  const std::string data = pattern(900);
  int sent = 0, aborted = 0;
  for (int i = 0; i < 100; ++i)
    client.async_send(asio::buffer(data), [&](std::error_code failed) { ++(failed ? aborted : sent); });
  bool receive_aborted = false;
  client.async_receive(
      [&](std::error_code failed, Message) { receive_aborted = failed == asio::error::operation_aborted; });
  client.close();
  run_until([&] { return sent + aborted == 100 && receive_aborted; });
  EXPECT_GT(aborted, 0);
}

TEST_F(ChannelEnd, a_cancelled_receive_loses_no_message) {
  auto [client, server] = channel_pair();
  asio::cancellation_signal stop;
  std::optional<std::error_code> outcome;
  server.async_receive(
      asio::bind_cancellation_slot(stop.slot(), [&](std::error_code failed, Message) { outcome = failed; }));
  stop.emit(asio::cancellation_type::all);
  ASSERT_TRUE(client.try_send(asio::buffer("later", 5)));
  run_until([&] { return outcome.has_value(); });
  EXPECT_EQ(*outcome, asio::error::operation_aborted);
  EXPECT_EQ(receive_text(server), "later");
}

TEST_F(ChannelEnd, a_stream_is_no_channel_and_the_other_way_round) {
  Acceptor streams = listen();
  ChannelAcceptor channels = listen_channel();
  Channel channel(*engine);
  std::optional<std::error_code> outcome;
  streams.async_accept([](std::error_code, Stream) {});
  async_connect(channel, streams.local_endpoint(), ChannelSettings(),
                [&](std::error_code failed) { outcome = failed; });
  run_until([&] { return outcome.has_value(); });
  EXPECT_EQ(*outcome, Errc::not_a_channel) << channel.error().what;

  Stream stream(*engine);
  outcome.reset();
  async_connect(stream, channels.local_endpoint(), {}, [&](std::error_code failed) { outcome = failed; });
  run_until([&] { return outcome.has_value(); });
  EXPECT_EQ(*outcome, Errc::refused) << stream.error().what;
  EXPECT_EQ(channels.rejected(), 1u);
}

TEST_F(ChannelEnd, an_io_context_that_is_destroyed_takes_waiting_operations_with_it) {
  auto own = std::make_unique<asio::io_context>(1);
  Result<Engine*> opened = Engine::open(*own, testing_support::test_provider());
  ASSERT_TRUE(opened);
  auto alive = std::make_shared<int>(1);
  {
    ChannelAcceptor acceptor = *ChannelAcceptor::listen(**opened, testing_support::test_address());
    auto channel = std::make_shared<Channel>(**opened);
    async_connect(*channel, acceptor.local_endpoint(), ChannelSettings(),
                  [alive, channel](std::error_code) {});
    acceptor.async_accept([alive](std::error_code, Channel) {});
  }
  own.reset();
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace weir::rdma
