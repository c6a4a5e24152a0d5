// What neighbours exchange: messages, calls and replies, full queues, and the end of a connection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <future>
#include <thread>

#include "link/same_host.hpp"
#include "tests/link/fixture.hpp"

namespace weir::link {
namespace {

using namespace std::chrono_literals;

class LinkMessages : public LinkTest {};

TEST_F(LinkMessages, messages_arrive_in_order_with_their_descriptors) {
  constexpr int count = 2000;  // more than a socket's buffer holds, so the queue is in play
  std::promise<std::vector<int>> all;
  std::vector<int> seen;
  auto b = attach({.messages = {{7, [&](const NeighbourPtr&, Message&& message) {
                                   int number = 0;
                                   std::memcpy(&number, message.body.data(), sizeof number);
                                   if (message.fds.size() != 1) number = -1;
                                   seen.push_back(number);
                                   if (seen.size() == count) all.set_value(seen);
                                 }}}});
  auto a = attach();
  const auto to_b = connect(*a, b->slot());
  const UniqueFd event(::eventfd(0, 0));
  const int fd = event.get();
  for (int i = 0; i < count; ++i) {
    Result<void> sent;
    do {
      sent = to_b->send(7, std::as_bytes(std::span(&i, 1)), std::span(&fd, 1));
      if (!sent) std::this_thread::yield();
    } while (!sent && sent.error().code == std::errc::no_buffer_space);
    ASSERT_TRUE(sent) << sent.error().what;
  }
  const auto got = all.get_future().get();
  for (int i = 0; i < count; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], i);
}

TEST_F(LinkMessages, a_call_returns_its_reply_with_descriptors) {
  auto a = attach(), b = attach({.messages = {echo(1)}});
  const UniqueFd event(::eventfd(42, 0));
  const int fd = event.get();
  const auto answer = connect(*a, b->slot())->call(1, bytes("question"), 5s, std::span(&fd, 1));
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(text(answer->body), "question");
  ASSERT_EQ(answer->fds.size(), 1u);
  EXPECT_EQ(event_count(answer->fds[0].get()), 42u);
}

TEST_F(LinkMessages, calls_of_many_threads_get_their_own_replies) {
  auto a = attach(), b = attach({.messages = {echo(1)}});
  const auto to_b = connect(*a, b->slot());
  std::vector<std::future<int>> workers;
  for (int worker = 0; worker < 4; ++worker) {
    workers.push_back(std::async(std::launch::async, [&, worker] {
      int wrong = 0;
      for (int i = 0; i < 200; ++i) {
        const std::string mine = std::to_string(worker) + ":" + std::to_string(i);
        const auto answer = to_b->call(1, bytes(mine), 10s);
        wrong += !answer || text(answer->body) != mine;
      }
      return wrong;
    }));
  }
  for (auto& worker : workers) EXPECT_EQ(worker.get(), 0);
}

TEST_F(LinkMessages, a_call_nobody_answers_times_out_and_its_late_reply_is_dropped) {
  std::promise<std::pair<NeighbourPtr, Message>> question;
  auto a = attach();
  auto b =
      attach({.messages = {{1, [&](const NeighbourPtr& from,
                                   Message&& message) { question.set_value({from, std::move(message)}); }},
                           echo(2)}});
  const auto to_b = connect(*a, b->slot());
  EXPECT_EQ(to_b->call(1, {}, 20ms).error().code, std::errc::timed_out);
  auto [from, message] = question.get_future().get();
  EXPECT_TRUE(from->reply(message, bytes("late")));
  const auto next = to_b->call(2, bytes("next"), 5s);
  ASSERT_TRUE(next);
  EXPECT_EQ(text(next->body), "next");
}

TEST_F(LinkMessages, a_call_of_a_kind_without_a_handler_fails_at_once) {
  auto a = attach(), b = attach();
  EXPECT_EQ(connect(*a, b->slot())->call(5, {}, 60s).error().code, std::errc::function_not_supported);
}

TEST_F(LinkMessages, a_message_that_is_too_big_is_refused_before_it_is_sent) {
  auto a = attach(), b = attach({.messages = {echo(1)}});
  const auto to_b = connect(*a, b->slot());
  const std::vector<std::byte> most(max_message_bytes), more(max_message_bytes + 1);
  const std::vector<int> fds(max_message_fds + 1, 0);
  EXPECT_EQ(to_b->send(1, more).error().code, std::errc::message_size);
  EXPECT_EQ(to_b->send(1, {}, fds).error().code, std::errc::message_size);
  const auto answer = to_b->call(1, most, 5s);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body.size(), max_message_bytes);
}

// As many as a process has completion queues, and more: an event that is lost is a program that waits for
// ever.
TEST_F(LinkMessages, a_burst_waits_whole_for_a_neighbour_that_is_slow_to_read) {
  constexpr int burst = 20'000;
  std::promise<void> release, all;
  auto held = release.get_future().share();
  std::atomic<int> arrived = 0;
  auto a = attach();
  auto b = attach({.messages = {{1, [&, held](const NeighbourPtr&, Message&&) {
                                   held.wait();
                                   if (++arrived == burst) all.set_value();
                                 }}}});
  const auto to_b = connect(*a, b->slot());
  int taken = 0;
  for (int i = 0; i < burst; ++i) taken += to_b->send(1, {}).has_value();
  EXPECT_EQ(taken, burst);
  release.set_value();
  if (taken == burst) {
    all.get_future().wait();
  }
}

TEST_F(LinkMessages, a_neighbour_that_does_not_read_fills_a_bounded_queue) {
  std::promise<void> release;
  auto held = release.get_future().share();
  auto a = attach();
  auto b = attach({.messages = {{1, [held](const NeighbourPtr&, Message&&) { held.wait(); }}}});
  const auto to_b = connect(*a, b->slot());
  const std::vector<std::byte> body(4096);
  Result<void> sent;
  int count = 0;
  while ((sent = to_b->send(1, body)) && count < 1'000'000) ++count;
  EXPECT_EQ(sent.error().code, std::errc::no_buffer_space);
  EXPECT_TRUE(to_b->alive());
  release.set_value();
}

TEST_F(LinkMessages, a_waiting_call_and_the_gone_handlers_learn_of_the_end_exactly_once) {
  std::promise<void> asked;
  std::atomic<int> first = 0, second = 0;
  std::promise<NeighbourPtr> ended;
  auto a = attach({.gone = {[&](const NeighbourPtr&) { ++first; }}});
  a->on_gone([&](const NeighbourPtr& who) {
    ++second;
    ended.set_value(who);
  });
  auto b = attach({.messages = {{1, [&](const NeighbourPtr&, Message&&) { asked.set_value(); }}}});
  const auto slot = b->slot();
  const auto to_b = connect(*a, slot);
  auto call = std::async(std::launch::async, [&] { return to_b->call(1, {}, 60s); });
  asked.get_future().wait();
  b.reset();
  EXPECT_EQ(call.get().error().code, std::errc::not_connected);
  EXPECT_EQ(ended.get_future().get(), to_b);
  EXPECT_FALSE(to_b->alive());
  EXPECT_EQ(a->connected(slot), nullptr);
  EXPECT_EQ(to_b->send(1, {}).error().code, std::errc::not_connected);
  EXPECT_EQ(a->connect(slot, 1s).error().code, std::errc::no_such_device_or_address);
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST_F(LinkMessages, messages_sent_before_the_end_arrive_before_it) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> seen;
    std::promise<void> over;
    auto a = attach({.messages = {{1,
                                   [&](const NeighbourPtr& from, Message&& message) {
                                     seen.push_back(text(message.body));
                                     // Left unread by b: its end then looks like a reset to us.
                                     (void)from->send(9, {});
                                   }}},
                     .gone = {[&](const NeighbourPtr&) { over.set_value(); }}});
    auto b = attach();
    const auto to_a = connect(*b, a->slot());
    for (const char* word : {"one", "two", "three"}) ASSERT_TRUE(to_a->send(1, bytes(word)));
    b.reset();
    over.get_future().wait();
    EXPECT_THAT(seen, testing::ElementsAre("one", "two", "three"));
  }
}

}  // namespace
}  // namespace weir::link
