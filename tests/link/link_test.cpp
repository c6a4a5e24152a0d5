// Two attachments in one process are neighbours like any others, so most of the link's behaviour is tested
// without a second process; process_test.cpp tests the rest.
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <future>
#include <latch>

#include "link/same_host.hpp"
#include "tests/link/fixture.hpp"

namespace weir::link {
namespace {

using namespace std::chrono_literals;

class Link : public LinkTest {};

TEST_F(Link, each_attachment_has_a_slot_of_its_own) {
  const auto a = attach(), b = attach();
  EXPECT_NE(a->slot(), b->slot());
  EXPECT_GT(a->slot(), 0);
  EXPECT_LT(a->slot(), max_slots);
}

TEST_F(Link, the_last_to_detach_removes_the_directory) {
  auto a = attach(), b = attach();
  a.reset();
  EXPECT_TRUE(exists(directory()));
  b.reset();
  EXPECT_FALSE(exists(directory()));
}

TEST_F(Link, both_sides_see_the_others_greeting_and_descriptors) {
  const UniqueFd a_event(::eventfd(7, 0)), b_event(::eventfd(9, 0));
  auto a = attach({.greeting = greeting("I am a", a_event.get())});
  auto heard = std::make_shared<std::promise<NeighbourPtr>>();
  auto b =
      attach({.greeting = greeting("I am b", b_event.get()),
              .messages = {{1, [heard](const NeighbourPtr& from, Message&&) { heard->set_value(from); }}}});
  const auto to_b = connect(*a, b->slot());
  ASSERT_TRUE(to_b->send(1, bytes("hello")));
  const auto to_a = heard->get_future().get();

  EXPECT_EQ(text(to_b->greeting().body), "I am b");
  EXPECT_EQ(text(to_a->greeting().body), "I am a");
  ASSERT_EQ(to_b->greeting().fds.size(), 1u);
  ASSERT_EQ(to_a->greeting().fds.size(), 1u);
  EXPECT_EQ(event_count(to_b->greeting().fds[0].get()), 9u);
  EXPECT_EQ(event_count(to_a->greeting().fds[0].get()), 7u);
  EXPECT_EQ(to_b->slot(), b->slot());
  EXPECT_EQ(to_a->slot(), a->slot());
  EXPECT_EQ(to_a->pid(), ::getpid());
  EXPECT_NE(to_a->incarnation(), to_b->incarnation());
}

TEST_F(Link, the_connection_is_one_whoever_opened_it) {
  auto a = attach(), b = attach({.messages = {echo(1)}});
  const auto to_b = connect(*a, b->slot());
  ASSERT_TRUE(to_b->call(1, {}, 5s));  // so b has certainly seen the hello
  EXPECT_EQ(a->connected(b->slot()), to_b);
  const auto to_a = b->connected(a->slot());
  ASSERT_NE(to_a, nullptr);
  EXPECT_EQ(connect(*b, a->slot()), to_a);
}

TEST_F(Link, connecting_from_both_sides_at_once_leaves_one_connection_and_none_gone) {
  std::atomic<int> gone = 0;
  const GoneHandler count = [&](const NeighbourPtr&) { ++gone; };
  for (int round = 0; round < 50; ++round) {
    auto a = attach({.messages = {echo(1)}, .gone = {count}}),
         b = attach({.messages = {echo(1)}, .gone = {count}});
    std::latch start(2);
    auto from_b = std::async(std::launch::async, [&] {
      start.arrive_and_wait();
      return b->connect(a->slot(), 10s);
    });
    start.arrive_and_wait();
    const auto to_b = a->connect(b->slot(), 10s);
    const auto to_a = from_b.get();
    ASSERT_TRUE(to_b) << to_b.error().what;
    ASSERT_TRUE(to_a) << to_a.error().what;
    EXPECT_TRUE((*to_b)->call(1, {}, 5s));
    EXPECT_TRUE((*to_a)->call(1, {}, 5s));
    EXPECT_EQ(gone, 0);
    EXPECT_EQ(a->connected(b->slot()), *to_b);
    EXPECT_EQ(b->connected(a->slot()), *to_a);
    a.reset();
    b.reset();
    gone = 0;  // b may or may not learn of a's end before its own
  }
}

TEST_F(Link, many_threads_that_want_one_neighbour_share_one_connection) {
  auto a = attach(), b = attach();
  std::vector<std::future<Result<NeighbourPtr>>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(std::async(std::launch::async, [&] { return a->connect(b->slot(), 10s); }));
  }
  for (auto& one : all) {
    const auto got = one.get();
    ASSERT_TRUE(got) << got.error().what;
    EXPECT_EQ(*got, a->connected(b->slot()));
  }
}

TEST_F(Link, a_process_is_a_neighbour_to_itself) {
  const UniqueFd event(::eventfd(3, 0));
  auto a = attach({.greeting = greeting("me", event.get()), .messages = {echo(1)}});
  const auto self = connect(*a, a->slot());
  EXPECT_EQ(self->slot(), a->slot());
  EXPECT_EQ(self->pid(), ::getpid());
  EXPECT_EQ(text(self->greeting().body), "me");
  EXPECT_EQ(event_count(self->greeting().fds.at(0).get()), 3u);
  const auto answer = self->call(1, bytes("to myself"), 5s);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(text(answer->body), "to myself");
  EXPECT_EQ(self->call(2, {}, 5s).error().code, std::errc::function_not_supported);
  a.reset();
  EXPECT_FALSE(self->alive());
  EXPECT_EQ(self->send(1, {}).error().code, std::errc::not_connected);
}

TEST_F(Link, an_empty_slot_and_a_wrong_slot_are_told_apart) {
  auto a = attach();
  const Slot empty = a->slot() == 5 ? 6 : 5;
  EXPECT_EQ(a->connect(empty, 5s).error().code, std::errc::no_such_device_or_address);
  EXPECT_EQ(a->connect(0, 5s).error().code, std::errc::invalid_argument);
  EXPECT_EQ(a->connect(max_slots, 5s).error().code, std::errc::invalid_argument);
}

TEST_F(Link, waiting_on_the_progress_thread_is_an_error_not_a_deadlock) {
  auto a = attach(), b = attach({.messages = {echo(1)}}), c = attach();
  const auto to_b = connect(*a, b->slot());
  std::promise<std::pair<std::errc, std::errc>> codes;
  a->post(
      [&] { codes.set_value({to_b->call(1, {}, 1s).error().code, a->connect(c->slot(), 1s).error().code}); });
  const auto got = codes.get_future().get();
  EXPECT_EQ(got.first, std::errc::resource_deadlock_would_occur);
  EXPECT_EQ(got.second, std::errc::resource_deadlock_would_occur);
}

TEST_F(Link, connecting_without_blocking_reports_on_the_progress_thread) {
  auto a = attach(), b = attach();
  const Slot empty = a->slot() == 5 || b->slot() == 5 ? 6 : 5;
  const struct {
    Slot slot;
    std::optional<std::errc> error;
  } cases[] = {{b->slot(), {}},
               {b->slot(), {}},  // connected already
               {a->slot(), {}},
               {empty, std::errc::no_such_device_or_address},
               {0, std::errc::invalid_argument}};
  for (const auto& one : cases) {
    std::promise<Result<NeighbourPtr>> done;
    on_progress(*a, [&] {
      a->connect_async(one.slot, 10s, [&](Result<NeighbourPtr> got) {
        EXPECT_TRUE(a->on_progress_thread());
        done.set_value(std::move(got));
      });
    });
    const auto got = done.get_future().get();
    EXPECT_EQ(got.has_value(), !one.error) << one.slot;
    if (got) {
      EXPECT_EQ((*got)->slot(), one.slot);
    } else {
      EXPECT_EQ(got.error().code, one.error);
    }
  }
}

TEST_F(Link, watches_run_while_readable_and_never_after_unwatch) {
  auto a = attach();
  const UniqueFd event(::eventfd(0, EFD_NONBLOCK));
  std::atomic<int> runs = 0;
  std::promise<void> thrice;
  ASSERT_TRUE(a->watch(event.get(), [&] {
    if (++runs == 3) {
      thrice.set_value();
      event_count(event.get());
    }
  }));
  signal_event(event.get());
  thrice.get_future().wait();  // level-triggered: unread, it ran again
  a->unwatch(event.get());
  signal_event(event.get());
  on_progress(*a, [] {});
  on_progress(*a, [] {});
  EXPECT_EQ(runs, 3);
  a->unwatch(event.get());  // a second time does nothing
}

TEST_F(Link, a_watched_descriptor_that_is_not_heeded_runs_nothing_until_it_is_again) {
  auto a = attach();
  const UniqueFd event(::eventfd(0, EFD_NONBLOCK));
  std::atomic<int> runs = 0;
  std::promise<void> ran;
  ASSERT_TRUE(a->watch(event.get(), [&] {
    event_count(event.get());
    if (++runs == 1) ran.set_value();
  }));
  a->heed(event.get(), false);
  signal_event(event.get());
  on_progress(*a, [] {});
  on_progress(*a, [] {});
  EXPECT_EQ(runs, 0);
  a->heed(event.get(), true);
  ran.get_future().wait();
  a->unwatch(event.get());
  a->heed(event.get(), true);  // does nothing
}

TEST_F(Link, unwatch_waits_for_a_running_handler) {
  auto a = attach();
  const UniqueFd event(::eventfd(1, EFD_NONBLOCK));
  std::promise<void> entered;
  std::promise<void> leave;
  std::atomic<bool> left = false;
  ASSERT_TRUE(a->watch(event.get(), [&, once = false]() mutable {
    if (std::exchange(once, true)) return;
    entered.set_value();
    leave.get_future().wait();
    left = true;
  }));
  entered.get_future().wait();
  auto unwatch = std::async(std::launch::async, [&] {
    a->unwatch(event.get());
    return left.load();
  });
  leave.set_value();
  EXPECT_TRUE(unwatch.get());
}

}  // namespace
}  // namespace weir::link
