// Two attachments in one process are two neighbours like any others, so most of the link's behaviour is
// tested without a second process; what needs one is in process_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <future>
#include <latch>
#include <thread>

#include "link/frame.hpp"
#include "link/same_host.hpp"
#include "tests/link/fixture.hpp"

namespace weir::link {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

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
    gone = 0;  // whether b hears of a's end before its own is a matter of time
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

TEST_F(Link, messages_arrive_in_order_with_their_descriptors) {
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

TEST_F(Link, a_call_returns_its_reply_with_descriptors) {
  auto a = attach(), b = attach({.messages = {echo(1)}});
  const UniqueFd event(::eventfd(42, 0));
  const int fd = event.get();
  const auto answer = connect(*a, b->slot())->call(1, bytes("question"), 5s, std::span(&fd, 1));
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(text(answer->body), "question");
  ASSERT_EQ(answer->fds.size(), 1u);
  EXPECT_EQ(event_count(answer->fds[0].get()), 42u);
}

TEST_F(Link, calls_of_many_threads_get_their_own_replies) {
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

TEST_F(Link, a_call_nobody_answers_times_out_and_its_late_reply_is_dropped) {
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

TEST_F(Link, a_call_of_a_kind_without_a_handler_fails_at_once) {
  auto a = attach(), b = attach();
  EXPECT_EQ(connect(*a, b->slot())->call(5, {}, 60s).error().code, std::errc::function_not_supported);
}

TEST_F(Link, a_message_that_is_too_big_is_refused_before_it_is_sent) {
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

TEST_F(Link, a_neighbour_that_does_not_read_fills_a_bounded_queue) {
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

TEST_F(Link, a_waiting_call_and_the_gone_handlers_learn_of_the_end_exactly_once) {
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

TEST_F(Link, messages_sent_before_the_end_arrive_before_it) {
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

TEST_F(Link, a_directory_that_cannot_be_used_is_an_error_that_names_it) {
  const std::string parent = directory() + "-parent";
  ASSERT_EQ(::mkdir(parent.c_str(), 0700), 0);
  const std::string open_to_all = parent + "/open";
  ASSERT_EQ(::mkdir(open_to_all.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open_to_all.c_str(), 0777), 0);
  const std::string file = parent + "/file";
  UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  const struct {
    std::string path;
    std::errc code;
  } cases[] = {
      {parent + "/missing/below", std::errc::no_such_file_or_directory},
      {open_to_all, std::errc::permission_denied},
      {file, std::errc::not_a_directory},
  };
  for (const auto& one : cases) {
    const auto attached = SameHostLink::attach({.directory = one.path});
    ASSERT_FALSE(attached) << one.path;
    EXPECT_EQ(attached.error().code, one.code) << attached.error().what;
    EXPECT_THAT(attached.error().what, HasSubstr(one.path));
    EXPECT_THAT(attached.error().what, HasSubstr("WEIR_RUNTIME_DIR"));
  }
  std::filesystem::remove_all(parent);
}

TEST_F(Link, a_directory_path_longer_than_a_socket_address_works) {
  const std::string parent = directory() + "-" + std::string(120, 'x');
  ASSERT_EQ(::mkdir(parent.c_str(), 0700), 0);
  const std::string deep = parent + "/" + std::string(100, 'y');
  {
    auto a = SameHostLink::attach({.directory = deep});
    ASSERT_TRUE(a) << a.error().what;
    auto b = SameHostLink::attach({.directory = deep});
    ASSERT_TRUE(b) << b.error().what;
    EXPECT_TRUE((*a)->connect((*b)->slot(), 5s));
  }
  EXPECT_FALSE(exists(deep));
  ::rmdir(parent.c_str());
}

TEST_F(Link, what_other_layers_left_in_the_directory_goes_with_the_last_process) {
  auto a = attach();
  UniqueFd(::open((directory() + "/cm-tcp-7471").c_str(), O_CREAT | O_WRONLY, 0600));
  a.reset();
  EXPECT_FALSE(exists(directory()));
}

// The list of names is kept while the directory does not change; its times are set here, so that they are
// old.
TEST_F(Link, who_comes_and_goes_is_seen_although_the_list_is_kept) {
  auto a = attach();
  const auto occupied_at = [&](time_t modified) {
    const timespec times[2] = {{modified, 0}, {modified, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, directory().c_str(), times, 0), 0);
    (void)a->occupied();  // keeps it
    return a->occupied();
  };
  EXPECT_THAT(occupied_at(1000), testing::UnorderedElementsAre(a->slot()));
  auto b = attach();
  EXPECT_THAT(a->occupied(), testing::UnorderedElementsAre(a->slot(), b->slot()));
  EXPECT_THAT(occupied_at(2000), testing::UnorderedElementsAre(a->slot(), b->slot()));
  b.reset();
  EXPECT_THAT(a->occupied(), testing::UnorderedElementsAre(a->slot()));
}

TEST_F(Link, a_lasting_file_stays_when_the_last_process_leaves) {
  auto a = attach();
  const std::string lasting = directory() + "/" + lasting_prefix + "file", other = directory() + "/file";
  for (const std::string& path : {lasting, other}) UniqueFd(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  a.reset();
  EXPECT_TRUE(exists(lasting));
  EXPECT_FALSE(exists(other));
  ::unlink(lasting.c_str());
  ::rmdir(directory().c_str());
}

TEST_F(Link, attaching_and_detaching_at_once_from_many_threads_never_fails) {
  std::vector<std::future<std::string>> workers;
  for (int worker = 0; worker < 4; ++worker) {
    workers.push_back(std::async(std::launch::async, [&]() -> std::string {
      for (int i = 0; i < 50; ++i) {
        auto link = SameHostLink::attach({.directory = directory()});
        if (!link) return link.error().what;
      }
      return {};
    }));
  }
  for (auto& worker : workers) EXPECT_EQ(worker.get(), "");
  EXPECT_FALSE(exists(directory()));
}

TEST_F(Link, the_default_directory_is_the_users_own_unless_told) {
  EXPECT_EQ(SameHostLink::default_directory(nullptr), "/dev/shm/weir-" + std::to_string(::geteuid()));
  EXPECT_EQ(SameHostLink::default_directory(""), SameHostLink::default_directory(nullptr));
  EXPECT_EQ(SameHostLink::default_directory("/run/mine"), "/run/mine");
}

}  // namespace
}  // namespace weir::link
