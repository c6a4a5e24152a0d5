// Which completion channel's descriptor becomes readable when packets are there. A pipe stands for the port.
#include "verbs/nic/completion_channels.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <new>

namespace weir::verbs {
namespace {

class CompletionChannelsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe2(pipe_.data(), O_CLOEXEC), 0);
    port_.reset(pipe_[0]);
    sender_.reset(pipe_[1]);
    ASSERT_EQ(::write(sender_.get(), "packet", 6), 6);
  }
  static bool readable(int descriptor) {
    pollfd wanted{descriptor, POLLIN, 0};
    return ::poll(&wanted, 1, 0) == 1;
  }
  CompletionChannels::Opened open(int flags) {
    const auto opened = channels_.open();
    EXPECT_TRUE(opened.has_value());
    EXPECT_EQ(::fcntl(opened->descriptor, F_SETFL, flags), 0);
    return *opened;
  }
  bool hold() { return channels_.hold(port_.get()); }

  CompletionChannels channels_;
  link::UniqueFd port_, sender_;

 private:
  std::array<int, 2> pipe_{};
};

TEST_F(CompletionChannelsTest, packets_wake_a_descriptor_that_never_blocks) {
  const auto channel = open(O_NONBLOCK);
  EXPECT_FALSE(readable(channel.descriptor));
  ASSERT_TRUE(hold());
  EXPECT_TRUE(readable(channel.descriptor));
  EXPECT_FALSE(readable(channel.events));
}

TEST_F(CompletionChannelsTest, packets_do_not_wake_a_descriptor_that_blocks) {
  const auto channel = open(0);
  EXPECT_FALSE(hold());
  EXPECT_FALSE(channels_.holds_port() || readable(channel.descriptor));
}

TEST_F(CompletionChannelsTest, packets_wake_none_of_several_channels) {
  open(O_NONBLOCK);
  const auto second = open(O_NONBLOCK);
  EXPECT_FALSE(hold());
  channels_.close(second.number);
  EXPECT_TRUE(hold());
}

TEST_F(CompletionChannelsTest, packets_wake_nobody_after_release) {
  const auto channel = open(O_NONBLOCK);
  ASSERT_TRUE(hold());
  channels_.release(port_.get());
  EXPECT_FALSE(channels_.holds_port() || readable(channel.descriptor));
  ASSERT_TRUE(hold());
}

TEST_F(CompletionChannelsTest, an_event_wakes_the_descriptor_and_is_counted_once) {
  const auto channel = open(0);
  channels_.raise(channel.number);
  EXPECT_TRUE(readable(channel.descriptor) && readable(channel.events));
  std::uint64_t count = 0;
  EXPECT_EQ(::read(channel.events, &count, sizeof count), 8);
  EXPECT_EQ(count, 1u);
  EXPECT_FALSE(readable(channel.descriptor));
}

TEST_F(CompletionChannelsTest, events_raised_while_receiving_are_counted_without_the_eventfd) {
  const auto channel = open(0);
  EXPECT_FALSE(channels_.raised_while(channel.number, [] {}));
  EXPECT_TRUE(channels_.raised_while(channel.number, [&] { channels_.raise(channel.number); }));
  EXPECT_FALSE(readable(channel.events));
  EXPECT_TRUE(channels_.raised_while(channel.number, [&] {
    for (int i = 0; i < 3; ++i) channels_.raise(channel.number);
  }));
  std::uint64_t count = 0;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(::read(channel.events, &count, sizeof count), 8);
  EXPECT_FALSE(readable(channel.events));
}

TEST_F(CompletionChannelsTest, events_survive_a_receiving_that_throws) {
  const auto channel = open(0);
  const auto receive = [&] {
    for (int i = 0; i < 2; ++i) channels_.raise(channel.number);
    throw std::bad_alloc();
  };
  EXPECT_THROW(channels_.raised_while(channel.number, receive), std::bad_alloc);
  channels_.raise(channel.number);
  std::uint64_t count = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(readable(channel.events)) << i;
    EXPECT_EQ(::read(channel.events, &count, sizeof count), 8);
  }
  EXPECT_FALSE(readable(channel.events));
}

TEST_F(CompletionChannelsTest, events_of_another_channel_use_its_eventfd_meanwhile) {
  const auto channel = open(0), other = open(0);
  EXPECT_FALSE(channels_.raised_while(channel.number, [&] { channels_.raise(other.number); }));
  EXPECT_TRUE(readable(other.events));
}

TEST_F(CompletionChannelsTest, a_closed_channel_takes_no_event_and_passes_nothing_on) {
  const auto channel = open(0);
  channels_.close(channel.number);
  channels_.raise(channel.number);
  channels_.pass_on(channel.number, [](int) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace weir::verbs
