// Which thread runs next, from what the arena says.
#include "twin/schedule.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>

namespace weir::twin {
namespace {

using link::fabric::Arena;
using link::fabric::no_time;
using link::fabric::ThreadRecord;
using link::fabric::ThreadState;
using link::fabric::Ticks;
using link::fabric::Wait;

class Schedule : public testing::Test {
 protected:
  Schedule() {
    for (auto& process : arena->processes) process.timer_due = process.alarm_due = no_time;
  }
  ThreadRecord& thread(std::uint32_t process, Wait wait, Ticks local, Ticks deadline = no_time) {
    const std::uint32_t number = arena->threads_used.fetch_add(1);
    ThreadRecord& record = arena->threads[number];
    record.state.store(static_cast<std::uint32_t>(ThreadState::waiting));
    record.process = process;
    record.wait = wait;
    record.local = local;
    record.deadline = deadline;
    record.ready_at = record.look_at = no_time;
    record.order = arena->waits++;
    return record;
  }
  Turn turn() const {
    const auto found = next_turn(*arena);
    EXPECT_TRUE(found.has_value());
    return found.value_or(Turn{});
  }

  // Zeroed memory, most of which is never touched, as the coordinator has it.
  struct Unmap {
    void operator()(Arena* mapped) const { ::munmap(mapped, sizeof(Arena)); }
  };
  std::unique_ptr<Arena, Unmap> arena{static_cast<Arena*>(::mmap(
      nullptr, sizeof(Arena), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))};
};

TEST_F(Schedule, HasNoTurnWhereAllWaitForOthers) {
  thread(0, Wait::descriptors, 10);
  thread(1, Wait::address, 20);
  EXPECT_FALSE(next_turn(*arena).has_value());
}

TEST_F(Schedule, GivesTheEarliestDeadlineItsTurn) {
  thread(0, Wait::time, 0, 500);
  thread(1, Wait::packets, 0, 300);
  thread(2, Wait::time, 0, 400);
  EXPECT_EQ(turn().thread, 1u);
  EXPECT_EQ(turn().at, 300u);
  EXPECT_EQ(turn().next, 400u);
}

TEST_F(Schedule, PrefersTheLowerNumberAtTheSameTime) {
  thread(3, Wait::time, 0, 300);
  thread(1, Wait::time, 0, 300);
  EXPECT_EQ(turn().thread, 0u);
  EXPECT_EQ(turn().next, 300u);
}

TEST_F(Schedule, NeverTurnsAThreadsClockBack) {
  thread(0, Wait::nothing, 900).ready_at = 100;
  EXPECT_EQ(turn().at, 900u);
}

TEST_F(Schedule, GivesTimersToTheFirstThreadOfTheirProcess) {
  thread(0, Wait::descriptors, 0);
  thread(1, Wait::descriptors, 0);
  thread(1, Wait::descriptors, 0);
  arena->processes[1].timer_due = 70;
  EXPECT_EQ(turn().thread, 1u);
  EXPECT_EQ(turn().at, 70u);
  EXPECT_EQ(turn().next, no_time);
}

TEST_F(Schedule, GivesTimersToTheNicsThreadWhereThereIsOne) {
  thread(1, Wait::descriptors, 0);
  thread(1, Wait::descriptors, 0).helper = 1;
  arena->processes[1].timer_due = 70;
  EXPECT_EQ(turn().thread, 1u);
}

TEST_F(Schedule, GivesAnAlarmToTheProgramsThread) {
  thread(1, Wait::descriptors, 0);
  thread(1, Wait::descriptors, 0).helper = 1;
  arena->processes[1].alarm_due = 70;
  EXPECT_EQ(turn().thread, 0u);
}

TEST_F(Schedule, GoesOnWhileAProgramSleeps) {
  thread(0, Wait::packets, 0, 1000);
  EXPECT_FALSE(will_go_on(*arena));
  thread(0, Wait::descriptors, 0, 1000).helper = 1;
  EXPECT_FALSE(will_go_on(*arena));
  thread(0, Wait::time, 0, 1000);
  EXPECT_TRUE(will_go_on(*arena));
}

TEST_F(Schedule, LetsOnlyDescriptorWaitsLook) {
  ThreadRecord& looks = thread(0, Wait::descriptors, 10);
  ThreadRecord& sleeps = thread(0, Wait::time, 10, 1000);
  let_look(*arena, 50);
  EXPECT_EQ(end_of_wait(looks), 50u);
  EXPECT_EQ(end_of_wait(sleeps), 1000u);
}

TEST_F(Schedule, WakesTheThreadThatPolledFirst) {
  ThreadRecord& second = thread(0, Wait::packets, 10, 1000);
  ThreadRecord& first = thread(0, Wait::packets, 10, 1000);
  std::swap(first.order, second.order);
  wake_for_packets(*arena, 0, 60);
  EXPECT_EQ(end_of_wait(first), 60u);
  EXPECT_EQ(end_of_wait(second), 1000u);
}

TEST_F(Schedule, WakesTheNicsThreadWhereNonePolls) {
  thread(0, Wait::time, 10, 1000);
  ThreadRecord& nic = thread(0, Wait::descriptors, 10);
  arena->processes[0].packet_thread = 1;
  wake_for_packets(*arena, 0, 60);
  EXPECT_EQ(end_of_wait(nic), 60u);
}

TEST_F(Schedule, DoesNotWakeAnotherProcessForPackets) {
  ThreadRecord& stranger = thread(1, Wait::packets, 10, 1000);
  wake_for_packets(*arena, 0, 60);
  EXPECT_EQ(end_of_wait(stranger), 1000u);
}

TEST_F(Schedule, ReleasesPollersOfTheSameProcessOnly) {
  ThreadRecord& worker = thread(0, Wait::descriptors, 10);
  ThreadRecord& poller = thread(0, Wait::packets, 10, 1000);
  ThreadRecord& stranger = thread(1, Wait::packets, 10, 1000);
  release_pollers(*arena, static_cast<std::uint32_t>(&worker - arena->threads.data()), 40);
  EXPECT_EQ(end_of_wait(poller), 40u);
  EXPECT_EQ(end_of_wait(stranger), 1000u);
}

TEST_F(Schedule, WritesEndWaitsForDescriptorsAndSendsThoseForCompletions) {
  thread(0, Wait::descriptors, 10);
  thread(1, Wait::packets, 20, 1000);  // its loop may look at descriptors, too
  thread(2, Wait::address, 0);
  let_look(*arena, 30);
  EXPECT_EQ(end_of_wait(arena->threads[0]), 30u);
  EXPECT_EQ(end_of_wait(arena->threads[1]), 1000u);
  let_pollers_look(*arena, 40, 0);
  EXPECT_EQ(end_of_wait(arena->threads[1]), 1000u);
  let_pollers_look(*arena, 40, std::nullopt);
  EXPECT_EQ(end_of_wait(arena->threads[1]), 40u);
  EXPECT_EQ(end_of_wait(arena->threads[2]), no_time);
}

TEST_F(Schedule, LetsTheNicsThreadTakePacketsBeforeAnother) {
  ThreadRecord& program = thread(0, Wait::time, 10, 1000);
  thread(0, Wait::descriptors, 20);
  arena->processes[0].packet_thread = 1;
  const auto taker = taker_before(*arena, Turn{.thread = 0, .at = 1000, .next = 2000});
  ASSERT_TRUE(taker);
  EXPECT_EQ(taker->thread, 1u);
  EXPECT_EQ(taker->at, 1000u);
  EXPECT_EQ(taker->next, 1000u);
  program.wait = Wait::packets;  // takes them itself
  EXPECT_FALSE(taker_before(*arena, Turn{.thread = 0, .at = 1000}));
}

TEST_F(Schedule, HoldsNoPacketsBackWhereNoThreadCouldTakeThem) {
  ThreadRecord& program = thread(0, Wait::time, 10, 1000);
  ThreadRecord& nic = thread(0, Wait::descriptors, 20);
  EXPECT_FALSE(can_take_later(*arena, 0));
  arena->processes[0].packet_thread = 1;
  EXPECT_TRUE(can_take_later(*arena, 0));
  program.wait = Wait::memory;
  EXPECT_FALSE(can_take_later(*arena, 0));
  program.wait = Wait::time;
  nic.wait = Wait::address;
  EXPECT_FALSE(can_take_later(*arena, 0));
}

}  // namespace
}  // namespace weir::twin
