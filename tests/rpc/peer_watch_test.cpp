// What a server's connections may hold, and when a client is given up: without sockets, at given times.
#include "rpc/server/peer_watch.hpp"

#include <gtest/gtest.h>

#include "rpc/server/memory_budget.hpp"

namespace weir::rpc {
namespace {

using std::chrono::seconds;
using Next = PeerWatch::Next;

constexpr PeerLimits limits{.first_frame = seconds(30), .frame = seconds(20), .keepalive = seconds(60)};

// Checks once a second from the first to `until`, and returns when there was something to do besides waiting.
struct Watched {
  explicit Watched(const PeerLimits& chosen = limits) : watch(chosen, start) {}
  Next until(int second) {
    while (now < second)
      if (const Next next = watch.look(start + seconds(++now), signs); next != Next::wait) return next;
    return Next::wait;
  }
  static constexpr PeerWatch::TimePoint start{};
  PeerWatch watch;
  PeerSigns signs;
  int now = 0;
};

TEST(PeerWatch, a_silent_socket_is_asked_once_and_then_given_up) {
  Watched silent;
  EXPECT_EQ(silent.until(100), Next::ping);
  EXPECT_EQ(silent.now, 15);
  EXPECT_EQ(silent.until(100), Next::first_frame_late);
  EXPECT_EQ(silent.now, 30);
}

TEST(PeerWatch, bytes_that_are_no_whole_frame_buy_a_stranger_no_time) {
  Watched slow;
  int given_up = 0;
  while (given_up == 0) {
    ++slow.signs.bytes_received;
    slow.signs.frame_bytes = 39;
    const Next next = slow.until(slow.now + 1);
    if (next == Next::first_frame_late || next == Next::frame_late) given_up = slow.now;
    ASSERT_LT(slow.now, 100);
  }
  EXPECT_LE(given_up, 30);
}

TEST(PeerWatch, a_client_that_answers_may_be_quiet_for_ever) {
  Watched client;
  client.signs.frames = 1;
  for (int hour = 0; hour < 60; ++hour) {
    EXPECT_EQ(client.until(client.now + 100), Next::ping);
    ++client.signs.frames;  // the pong
  }
}

TEST(PeerWatch, a_client_that_does_not_answer_is_given_up_after_a_second_pause) {
  Watched client;
  client.signs.frames = 1;
  EXPECT_EQ(client.until(200), Next::ping);
  const int asked = client.now;
  EXPECT_EQ(client.until(200), Next::silent);
  EXPECT_EQ(client.now, asked + 60);
}

TEST(PeerWatch, a_frame_has_time_for_its_size_and_no_more) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{64} << 20}) {
    Watched client;
    client.signs.frames = 1;
    client.signs.frame_bytes = bytes;
    Next next = Next::wait;
    while (next == Next::wait || next == Next::ping) {
      ++client.signs.bytes_received;
      next = client.until(client.now + 1);
    }
    EXPECT_EQ(next, Next::frame_late);
    EXPECT_NEAR(client.now, 20 + static_cast<int>(bytes / (64 << 10)), 2);
  }
}

TEST(PeerWatch, time_in_which_the_server_does_not_read_is_not_the_clients) {
  Watched client;
  client.signs.frames = 1;
  client.signs.frame_bytes = 100;
  client.signs.reading = false;
  EXPECT_EQ(client.until(1000), Next::wait);
}

TEST(PeerWatch, a_client_that_takes_nothing_of_what_waits_is_given_up_even_then) {
  Watched client;
  client.signs.frames = 1;
  client.signs.reading = false;
  client.signs.bytes_waiting = 1000;
  EXPECT_EQ(client.until(1000), Next::takes_nothing);
  EXPECT_NEAR(client.now, 60, 1);
}

TEST(PeerWatch, idle_is_a_connection_without_calls_only_where_that_is_limited) {
  PeerLimits with_idle = limits;
  with_idle.idle = seconds(10);
  Watched client(with_idle);
  client.signs.frames = 1;
  client.signs.busy = true;
  EXPECT_EQ(client.until(50), Next::wait);
  client.signs.busy = false;
  EXPECT_EQ(client.until(100), Next::idle);
}

TEST(MemoryBudget, what_crosses_the_limit_is_told_and_what_goes_back_makes_room) {
  constexpr std::size_t grain = MemoryBudget::grain;
  MemoryBudget budget(10 * grain);
  std::size_t first = 0, second = 0;
  EXPECT_TRUE(budget.settle(first, 8 * grain));
  EXPECT_TRUE(budget.takes_calls());
  EXPECT_TRUE(budget.settle(second, 2 * grain));
  EXPECT_FALSE(budget.takes_calls());
  EXPECT_FALSE(budget.settle(second, 3 * grain));
  EXPECT_TRUE(budget.settle(second, 3 * grain)) << "who brings nothing more is not to blame";
  EXPECT_TRUE(budget.settle(second, 0));
  EXPECT_TRUE(budget.settle(first, 0));
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.peak(), 11 * grain);
}

TEST(MemoryBudget, the_share_of_each_shrinks_as_the_memory_fills) {
  constexpr std::size_t mib = 1 << 20, most = 16 * mib;
  struct Row {
    std::size_t used, share;
  };
  constexpr Row rows[] = {{0, most},
                          {32 * mib, most},
                          {33 * mib, 63 * mib / 4},
                          {92 * mib, mib},
                          {95 * mib, mib / 4},
                          {96 * mib, MemoryBudget::least_share},
                          {200 * mib, MemoryBudget::least_share}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.used);
    MemoryBudget budget(256 * mib);
    std::size_t others = 0;
    EXPECT_TRUE(budget.settle(others, row.used));
    EXPECT_EQ(budget.share(most), row.share);
    EXPECT_EQ(budget.share(1000), 1000u);
  }
}

TEST(MemoryBudget, little_is_not_counted) {
  MemoryBudget budget(1);
  std::size_t mine = 0;
  EXPECT_TRUE(budget.settle(mine, MemoryBudget::grain - 1));
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace weir::rpc
