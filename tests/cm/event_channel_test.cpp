// An event channel's descriptor is readable exactly when an event is queued.
#include "verbs/cm/event_channel.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>

#include "verbs/cm/identifier.hpp"

namespace weir::cm {
namespace {

class Channel : public testing::Test {
 protected:
  Channel() : channel_(EventChannel::open()) { set_nonblocking(true); }
  void set_nonblocking(bool on) { ::fcntl(channel_->fd, F_SETFL, on ? O_NONBLOCK : 0); }
  void push(Id& id, int status) {
    auto event = std::make_unique<Event>();
    event->counted_on = &id;
    event->status = status;
    channel_->push(std::move(event));
  }
  bool readable() {
    pollfd one{.fd = channel_->fd, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) == 1;
  }
  std::unique_ptr<EventChannel> channel_;
  Id a_, b_;
};

TEST_F(Channel, gives_a_forked_child_nothing_and_says_so) {
  push(a_, 7);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(channel_->take() == nullptr && errno == ENODEV ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const EventPtr event = channel_->take();
  ASSERT_TRUE(event) << "the child took it";
  EXPECT_EQ(event->status, 7);
}

TEST_F(Channel, has_no_event_for_what_others_wrote_into_its_descriptor) {
  const std::uint64_t two = 2;
  push(a_, 1);
  ASSERT_EQ(::write(channel_->fd, &two, sizeof two), static_cast<ssize_t>(sizeof two));
  EXPECT_EQ(channel_->take()->status, 1);
  EXPECT_EQ(channel_->take(), nullptr);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Channel, is_readable_while_events_are_queued) {
  EXPECT_FALSE(readable());
  push(a_, 1);
  push(a_, 2);
  EXPECT_TRUE(readable());
  EXPECT_EQ(channel_->take()->status, 1);
  EXPECT_TRUE(readable());
  EXPECT_EQ(channel_->take()->status, 2);
  EXPECT_FALSE(readable());
}

TEST_F(Channel, honours_nonblock) {
  EXPECT_EQ(channel_->take(), nullptr);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(Channel, blocks_until_an_event_comes) {
  set_nonblocking(false);
  auto taken = std::async(std::launch::async, [&] { return channel_->take(); });
  push(a_, 7);
  EXPECT_EQ(taken.get()->status, 7);
}

TEST_F(Channel, withdrawing_takes_one_identifiers_events_and_their_readiness) {
  push(a_, 1);
  push(b_, 2);
  push(a_, 3);
  const auto withdrawn = channel_->withdraw(a_);
  ASSERT_EQ(withdrawn.size(), 2u);
  EXPECT_EQ(withdrawn[0]->status, 1);
  EXPECT_EQ(withdrawn[1]->status, 3);
  EXPECT_TRUE(readable());
  EXPECT_EQ(channel_->take()->status, 2);
  EXPECT_FALSE(readable());
}

TEST_F(Channel, withdrawing_works_on_a_blocking_channel_too) {
  set_nonblocking(false);
  push(a_, 1);
  EXPECT_EQ(channel_->withdraw(a_).size(), 1u);
  EXPECT_FALSE(readable());
  EXPECT_TRUE(channel_->withdraw(a_).empty());
}

TEST_F(Channel, readers_and_withdrawals_at_once_lose_and_invent_nothing) {
  set_nonblocking(false);
  constexpr int rounds = 2000;
  auto reader = std::async(std::launch::async, [&] {
    int sum = 0;
    for (int i = 0; i < rounds; ++i) {
      const auto event = channel_->take();
      if (!event || event->counted_on != &b_) return -1;
      sum += event->status;
    }
    return sum;
  });
  for (int i = 0; i < rounds; ++i) push(b_, 1);
  EXPECT_EQ(reader.get(), rounds);
  for (int i = 0; i < 100; ++i) push(a_, 1);
  auto taker = std::async(std::launch::async, [&] { return channel_->take()->status; });
  const auto withdrawn = channel_->withdraw(a_);
  push(b_, 1);
  push(b_, 1);
  EXPECT_EQ(taker.get(), 1);
  EXPECT_GE(withdrawn.size(), 99u);
  set_nonblocking(true);
  int left = 0;
  while (channel_->take()) ++left;
  EXPECT_EQ(left + static_cast<int>(withdrawn.size()), 101);
  EXPECT_FALSE(readable());
}

TEST_F(Channel, the_thread_that_destroyed_it_is_told_so) {
  set_nonblocking(false);
  EventChannel& channel = *channel_.release();
  EventChannel::destroy(channel);
  EXPECT_EQ(channel.take(), nullptr);
  EXPECT_EQ(errno, EBADF);
}

TEST_F(Channel, a_thread_that_does_not_want_to_block_is_told_that_another_destroyed_it) {
  EventChannel& channel = *channel_.release();
  std::thread([&] { EventChannel::destroy(channel); }).join();
  EXPECT_EQ(channel.take(), nullptr);
  EXPECT_EQ(errno, EBADF);
}

bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.substr(text.rfind(')') + 2, 1) == "S";
}

TEST_F(Channel, a_thread_that_comes_after_another_destroyed_it_waits_as_if_it_had_been_in_time) {
  set_nonblocking(false);
  struct Late {
    EventChannel& channel;
    std::promise<pid_t> id;
  } late{*channel_.release(), {}};
  EventChannel::destroy(late.channel);
  pthread_t thread{};
  const auto come_late = [](void* about) -> void* {
    Late& self = *static_cast<Late*>(about);
    self.id.set_value(::gettid());
    self.channel.take();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, come_late, &late), 0);
  const pid_t id = late.id.get_future().get();
  while (!sleeps(id)) std::this_thread::yield();  // the test's time limit ends this if take() returns
  void* result = nullptr;
  ::pthread_cancel(thread);
  ::pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

TEST_F(Channel, private_data_has_the_whole_fields_length) {
  Event event;
  const void* data = nullptr;
  std::uint8_t length = 0;
  const std::byte given[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
  event.set_private_data(given, 56, data, length);
  EXPECT_EQ(length, 56);
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  EXPECT_EQ(bytes[2], 3);
  for (int i = 3; i < 56; ++i) EXPECT_EQ(bytes[i], 0);
}

}  // namespace
}  // namespace weir::cm
