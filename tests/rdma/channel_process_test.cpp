// Channels between two processes, and a peer that is killed while it sends, while it offers, while it is
// idle, and while we send to it.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/rdma/channel_pair.hpp"
#include "tests/rdma/child_process.hpp"

namespace weir::rdma {
namespace {

using testing_support::ChannelTest;
using testing_support::Child;
using testing_support::pattern;

struct ChannelProcess : ChannelTest {
  std::optional<ChannelAcceptor> acceptor;
  std::optional<Channel> channel;

  void SetUp() override {
    ChannelTest::SetUp();
    acceptor.emplace(listen_channel());
  }
  void serve(Child&) {
    acceptor->async_accept([this](std::error_code failed, Channel accepted) {
      ASSERT_FALSE(failed) << failed.message();
      channel.emplace(std::move(accepted));
    });
    run_until([&] { return channel.has_value(); });
  }
  void expect_end_and_memory_back() {
    run_until([&] {
      while (channel->try_receive()) {
      }
      return static_cast<bool>(channel->end());
    });
    EXPECT_FALSE(channel->error().what.empty());
    while (channel->try_receive()) {
    }
    channel.reset();
    run_until([&] { return engine->stats().connections == 0; });
    EXPECT_EQ(engine->stats().pool.blocks, 0u);
    auto [client, server] = connect_channels(*acceptor);
    ASSERT_TRUE(client.try_send(asio::buffer("fine", 4)));
    EXPECT_EQ(receive_text(server), "fine");
  }
};

TEST_F(ChannelProcess, talks_to_another_process) {
  Child child(acceptor->local_endpoint(), "channel-echo");
  serve(child);
  for (const std::size_t bytes : {1u, 100u, 10'000u, 40'000u, 1'000'000u}) {
    const std::string sent = pattern(bytes);
    ASSERT_TRUE(channel->try_send(asio::buffer(sent)));
    EXPECT_EQ(receive_text(*channel), sent);
  }
}

TEST_F(ChannelProcess, a_thousand_pings_between_two_processes) {
  Child child(acceptor->local_endpoint(), "channel-echo");
  serve(child);
  for (int i = 0; i < 1000; ++i) {
    const std::string sent = std::to_string(i);
    ASSERT_TRUE(channel->try_send(asio::buffer(sent)));
    ASSERT_EQ(receive_text(*channel), sent);
  }
}

struct Killed : ChannelProcess, testing::WithParamInterface<const char*> {};

TEST_P(Killed, ends_the_channel_and_its_memory_goes_back) {
  Child child(acceptor->local_endpoint(), GetParam());
  serve(child);
  const bool sends = std::string(GetParam()) != "channel-idle";
  std::size_t got = 0;
  run_until([&] {
    while (channel->try_receive()) ++got;
    return !sends || got > 100;
  });
  child.kill_now();
  expect_end_and_memory_back();
}

INSTANTIATE_TEST_SUITE_P(While, Killed, testing::Values("channel-flood", "channel-offers", "channel-idle"),
                         [](const auto& each) { return std::string(each.param).substr(8); });

TEST_F(ChannelProcess, a_peer_killed_while_we_send_to_it_completes_all_that_waits) {
  Child child(acceptor->local_endpoint(), "channel-idle");
  serve(child);
  const std::string data = pattern(20'000), large = pattern(200'000);
  int completed = 0;
  constexpr int count = 100;
  for (int i = 0; i < count; ++i)
    channel->async_send(asio::buffer(i % 2 == 0 ? data : large), [&](std::error_code) { ++completed; });
  run_until([&] { return channel->counters().offers > 0; });
  child.kill_now();
  run_until([&] { return completed == count; });
  expect_end_and_memory_back();
}

}  // namespace
}  // namespace weir::rdma
