// A connection's accounts: what may be announced, read, written and signalled, event by event.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <random>

#include "rdma/stream/receive_size.hpp"
#include "rdma/stream/receive_window.hpp"
#include "rdma/stream/send_queue.hpp"
#include "rdma/stream/send_window.hpp"

namespace weir::rdma {
namespace {

TEST(ReceiveWindow, announces_first_buffer_once) {
  ReceiveWindow window;
  ASSERT_EQ(window.due(), 0u);
  window.announced(0, 100);
  EXPECT_EQ(window.due(), std::nullopt);
}

TEST(ReceiveWindow, refuses_bytes_before_an_announcement) {
  ReceiveWindow window;
  EXPECT_FALSE(window.deliver(1));
  EXPECT_TRUE(window.deliver(0)) << "an empty immediate is tolerated";
}

TEST(ReceiveWindow, refuses_bytes_beyond_the_buffer) {
  for (const std::uint32_t lie : {101u, 0x80000000u, 0xffffffffu}) {
    ReceiveWindow window;
    window.announced(0, 100);
    EXPECT_FALSE(window.deliver(lie));
    EXPECT_TRUE(window.deliver(60));
    EXPECT_FALSE(window.deliver(lie - 60));
    EXPECT_TRUE(window.deliver(40));
    EXPECT_FALSE(window.deliver(1)) << "full";
  }
}

TEST(ReceiveWindow, announces_nothing_before_the_buffer_is_full) {
  ReceiveWindow window;
  window.announced(0, 100);
  window.deliver(99);
  window.consume(99);
  EXPECT_EQ(window.due(), std::nullopt);
  EXPECT_EQ(window.readable().bytes, 0u);
}

TEST(ReceiveWindow, announces_the_same_buffer_again_when_all_was_read) {
  ReceiveWindow window;
  window.announced(0, 100);
  window.deliver(60);
  window.consume(60);
  window.deliver(40);
  EXPECT_EQ(window.readable().offset, 60u);
  window.consume(40);
  EXPECT_EQ(window.due(), 0u);
}

TEST(ReceiveWindow, announces_the_second_buffer_while_the_first_is_unread) {
  ReceiveWindow window;
  window.announced(0, 100);
  window.deliver(100);
  ASSERT_EQ(window.due(), 1u);
  window.announced(1, 100);
  window.deliver(30);
  EXPECT_EQ(window.readable().buffer, 0u) << "in order";
  window.consume(100);
  EXPECT_EQ(window.readable().buffer, 1u);
  EXPECT_EQ(window.readable().bytes, 30u);
  EXPECT_EQ(window.due(), std::nullopt) << "the second is not full";
}

TEST(ReceiveWindow, announces_nothing_while_both_are_unread) {
  ReceiveWindow window;
  window.announced(0, 100);
  window.deliver(100);
  window.announced(1, 100);
  window.deliver(100);
  EXPECT_EQ(window.due(), std::nullopt);
  window.consume(100);
  EXPECT_EQ(window.due(), 0u);
}

TEST(ReceiveWindow, delivers_in_order_for_any_mix_of_reads_and_writes) {
  std::mt19937 random(7);
  ReceiveWindow window;
  std::deque<std::uint32_t> offsets;  // of every delivered byte; the upper bits are its buffer
  std::uint32_t filling = 0, filled = 97, length = 97;
  for (int step = 0; step < 20000; ++step) {
    if (const auto due = window.due()) {
      ASSERT_EQ(filled, length) << "announced early";
      length = 1 + random() % 97;
      window.announced(*due, length);
      filling = *due;
      filled = 0;
    }
    const std::uint32_t bytes = random() % 40;
    if (window.deliver(bytes)) {
      for (std::uint32_t i = 0; i < bytes; ++i) offsets.push_back(filling << 16 | filled++);
    } else {
      ASSERT_TRUE(filled == length || filled + bytes > length);
      const std::uint32_t tail = length - filled;
      ASSERT_TRUE(window.deliver(tail));
      for (std::uint32_t i = 0; i < tail; ++i) offsets.push_back(filling << 16 | filled++);
    }
    const auto now = window.readable();
    const std::uint32_t take = now.bytes == 0 ? 0 : random() % (now.bytes + 1);
    for (std::uint32_t i = 0; i < take; ++i) {
      ASSERT_FALSE(offsets.empty());
      ASSERT_EQ(offsets.front(), now.buffer << 16 | (now.offset + i));
      offsets.pop_front();
    }
    window.consume(take);
  }
}

TEST(ReceiveSize, follows_what_filled_the_buffer_before) {
  constexpr std::uint32_t kib = 1024;
  struct Case {
    const char* name;
    std::uint32_t write_bytes;  // each
    std::uint32_t most, settles_at;
  };
  for (const Case& each : {Case{"requests without a pipeline", 40, 1024 * kib, 64 * kib},
                           Case{"pipelines of small requests", 4 * kib, 1024 * kib, 64 * kib},
                           Case{"values in pieces", 64 * kib, 1024 * kib, 1024 * kib},
                           Case{"whole buffers at once", 16384 * kib, 16384 * kib, 16384 * kib},
                           Case{"no room to grow into", 64 * kib, 64 * kib, 64 * kib},
                           Case{"a buffer that is smaller than small", 40, 8 * kib, 8 * kib},
                           Case{"a most that no step meets", 64 * kib, 96 * kib, 96 * kib}}) {
    SCOPED_TRACE(each.name);
    for (const bool from_large : {false, true}) {
      ReceiveSize size(each.most);
      for (int i = 0; from_large && i < 10; ++i) size.after(1);
      for (int i = 0; i < 10; ++i) size.after((size.now() + each.write_bytes - 1) / each.write_bytes);
      if (!from_large || each.write_bytes <= 4 * kib || each.settles_at == each.most) {
        EXPECT_EQ(size.now(), each.settles_at) << (from_large ? "from the most" : "from the start");
      }
    }
  }
}

TEST(ReceiveSize, stays_within_its_bounds_whatever_is_written) {
  std::mt19937 random(11);
  ReceiveSize size(300 << 10);
  for (int i = 0; i < 1000; ++i) {
    const std::uint32_t now = size.after(random() % 3 == 0 ? random() : random() % 6);
    ASSERT_GE(now, 64u << 10);
    ASSERT_LE(now, 300u << 10);
  }
}

TEST(SendWindow, fills_to_the_very_end_and_starts_over_when_announced) {
  SendWindow window;
  EXPECT_EQ(window.room(), 0u) << "nothing may be written before an announcement";
  window.open({.addr = 0x1000, .length_bytes = 100, .rkey = 7});
  window.advance(60);
  EXPECT_EQ(window.room(), 40u);
  EXPECT_EQ(window.address(), 0x1000u + 60);
  window.advance(40);
  EXPECT_EQ(window.room(), 0u);
  window.open({.addr = 0x2000, .length_bytes = 50, .rkey = 8});
  EXPECT_EQ(window.room(), 50u);
  EXPECT_EQ(window.address(), 0x2000u);
  EXPECT_EQ(window.rkey(), 8u);
}

TEST(SendQueue, signals_every_interval) {
  SendQueue queue(64, 4, 4096);
  int signals = 0;
  for (int i = 0; i < 32; ++i) {
    const bool signal = queue.must_signal(0);
    queue.posted(0, signal);
    signals += signal;
  }
  EXPECT_EQ(signals, 8);
}

TEST(SendQueue, interval_is_at_most_half_the_depth) {
  SendQueue queue(16, 512, 4096);
  int until_signal = 1;
  while (!queue.must_signal(0)) {
    queue.posted(0, false);
    ++until_signal;
  }
  EXPECT_EQ(until_signal, 8);
}

TEST(SendQueue, one_completion_stands_for_all_before_it) {
  SendQueue queue(64, 32, 4096);
  for (int i = 0; i < 5; ++i) queue.posted(100, false);
  queue.posted(100, true);
  queue.posted(100, false);
  EXPECT_EQ(queue.outstanding(), 7u);
  EXPECT_TRUE(queue.completed());
  EXPECT_EQ(queue.outstanding(), 1u);
  EXPECT_FALSE(queue.completed()) << "a completion that nobody asked for";
}

TEST(SendQueue, stages_from_the_rings_start_again_once_all_is_sent) {
  constexpr std::uint32_t ring = 256 << 10, bytes = 400;
  SendQueue queue(1024, 512, ring);
  std::uint32_t furthest = 0;
  for (int i = 0; i < 10'000; ++i) {
    furthest = std::max(furthest, queue.stage_offset() + bytes);
    const bool signal = queue.must_signal(bytes);
    queue.posted(bytes, signal);
    if (!signal) continue;
    EXPECT_TRUE(queue.completed());
  }
  EXPECT_LE(furthest, SendQueue::warm_bytes + bytes);
}

TEST(SendQueue, a_late_completion_of_what_staged_nothing_frees_nothing) {
  SendQueue queue(64, 32, 4096);
  queue.posted(100, true);
  queue.posted(0, true);
  EXPECT_TRUE(queue.completed());
  EXPECT_EQ(queue.stage_offset(), 0u);
  queue.posted(4096, true);
  EXPECT_EQ(queue.stage_room(), 0u);
  EXPECT_TRUE(queue.completed()) << "of the one that staged nothing";
  EXPECT_EQ(queue.stage_room(), 0u);
}

TEST(SendQueue, never_waits_without_a_signal_outstanding_and_never_overflows) {
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::uint32_t depth = 16u << random() % 4, ring = 1000;
    SendQueue queue(depth, 1 + random() % depth, ring);
    std::deque<std::uint32_t> in_ring;
    for (int step = 0; step < 20000; ++step) {
      if (random() % 3 == 0) queue.completed();
      ASSERT_LE(queue.outstanding(), depth);
      const bool control = random() % 50 == 0;
      if (control && queue.room_for_control()) {
        queue.posted(0, true);
        continue;
      }
      const std::uint32_t want = random() % 2 == 0 ? 0 : 1 + random() % 400;
      const std::uint32_t staged = std::min(want, queue.stage_room());
      if (!queue.room_for_data() || (want > 0 && staged == 0)) {
        ASSERT_TRUE(queue.completed()) << "stalled for ever";
        continue;
      }
      ASSERT_LE(queue.stage_offset() + staged, ring);
      queue.posted(staged, queue.must_signal(staged));
    }
  }
}

}  // namespace
}  // namespace weir::rdma
