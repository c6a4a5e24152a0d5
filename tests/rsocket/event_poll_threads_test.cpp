// Event polls that several threads use.
#include <pthread.h>
#include <signal.h>

#include "tests/rsocket/event_poll_fixture.hpp"

namespace weir::rsocket {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

// A reader takes the completions that a sleeper of the same socket waits for.
TEST(EventPoll, wakes_a_sleeper_for_what_another_thread_found) {
  Pair pair(4096);
  set_blocking(pair.client, false);
  const std::string much = pattern(100'000);
  while (send(pair.client, much) > 0) {
  }
  Set set;
  set.add(pair.client, EPOLLOUT);
  auto waits = set.begin_wait();
  receive(pair.server, 100'000);
  send(pair.server, "x");
  EXPECT_EQ(poll(pair.client, POLLIN), POLLIN);
  EXPECT_THAT(waits.get(), ElementsAre(out(pair.client)));
}

TEST(EventPoll, gives_each_of_two_sleepers_one_of_two_one_shot_members) {
  Pair first, second;
  Set set;
  set.add(first.server, EPOLLIN | EPOLLONESHOT);
  set.add(second.server, EPOLLIN | EPOLLONESHOT);
  const auto wait_for_one = [&] { return set.wait(patience_ms, 1); };
  auto one = std::async(std::launch::async, wait_for_one);
  auto other = std::async(std::launch::async, wait_for_one);
  send(first.client, "x");
  send(second.client, "x");
  auto told = one.get();
  for (const Told& more : other.get()) told.push_back(more);
  EXPECT_THAT(told, UnorderedElementsAre(in(first.server), in(second.server)));
}

// While one thread handles its events, another that sleeps must get the rest.
TEST(EventPoll, hands_the_watch_over_to_a_sleeper) {
  Pair first, second;
  Set set;
  set.add(first.server, EPOLLIN | EPOLLONESHOT);
  set.add(second.server, EPOLLIN | EPOLLONESHOT);
  auto one = set.begin_wait();
  auto other = set.begin_wait();
  send(first.client, "x");
  // One thread is back with the first member; no other thread looks at the second.
  std::future<std::vector<Told>>* left = nullptr;
  while (left == nullptr) {
    if (one.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) left = &other;
    if (left == nullptr && other.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready)
      left = &one;
  }
  send(second.client, "x");
  EXPECT_THAT(left->get(), ElementsAre(in(second.server)));
}

TEST(EventPoll, is_interrupted_by_a_signal) {
  struct sigaction before, action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;  // epoll_wait() is never restarted
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  Pair pair;
  Set set;
  set.add(pair.server, EPOLLIN);
  std::promise<pthread_t> who;
  auto waits = std::async(std::launch::async, [&] {
    who.set_value(::pthread_self());
    epoll_event event;
    return ::repoll_wait(set.get(), &event, 1, patience_ms) == -1 ? errno : 0;
  });
  const pthread_t sleeper = who.get_future().get();
  while (waits.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    ::pthread_kill(sleeper, SIGUSR1);
  EXPECT_EQ(waits.get(), EINTR);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(EventPoll, ends_the_waits_of_one_that_is_closed) {
  const int number = ::repoll_create(0);
  auto waits = std::async(std::launch::async, [&] {
    epoll_event event;
    return ::repoll_wait(number, &event, 1, patience_ms) == -1 ? errno : 0;
  });
  give_others_time();
  EXPECT_EQ(::rclose(number), 0);
  EXPECT_EQ(waits.get(), EBADF);
}

// Bytes from many clients through one set, which mostly sleeps; no byte may be missed.
TEST(EventPoll, loses_no_event_under_load) {
  constexpr int streams = 12, messages = 300;
  std::vector<Pair> pairs(streams);
  Set set;
  for (const Pair& pair : pairs) set.add(pair.server, EPOLLIN | EPOLLET);
  auto senders = std::async(std::launch::async, [&] {
    std::uint32_t random = 1;
    for (int i = 0; i < streams * messages; ++i) {
      random = random * 1664525 + 1013904223;
      EXPECT_EQ(send(pairs[random % streams].client, "m"), 1);
      if ((random >> 16) % 7 == 0) give_others_time();
    }
  });
  std::size_t got = 0;
  while (got < std::size_t{streams} * messages) {
    const auto told = set.wait();
    ASSERT_FALSE(told.empty()) << got;
    for (const auto& [events, number] : told) {
      char bytes[4096];
      ssize_t size;
      while ((size = ::rrecv(int(number), bytes, sizeof bytes, MSG_DONTWAIT)) > 0) got += std::size_t(size);
    }
  }
  senders.get();
}

}  // namespace
}  // namespace weir::rsocket
