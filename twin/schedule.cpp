#include "twin/schedule.hpp"

#include <algorithm>
#include <array>

namespace weir::twin {

using link::fabric::Arena;
using link::fabric::max_processes;
using link::fabric::max_threads;
using link::fabric::no_time;
using link::fabric::read_once;
using link::fabric::ThreadRecord;
using link::fabric::ThreadState;
using link::fabric::Ticks;
using link::fabric::Wait;

namespace {

bool waits(const ThreadRecord& thread) {
  return thread.state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ThreadState::waiting);
}

std::uint32_t used(const Arena& arena) { return std::min(arena.threads_used.load(), max_threads); }

template <class Use>
void for_each_waiting(Arena& arena, Use use) {
  for (std::uint32_t i = 0; i < used(arena); ++i)
    if (waits(arena.threads[i])) use(arena.threads[i]);
}

}  // namespace

std::uint32_t process_of(const ThreadRecord& thread) {
  return std::min(read_once(thread.process), max_processes - 1);
}

Ticks end_of_wait(const ThreadRecord& thread) {
  const Ticks over =
      std::min({read_once(thread.ready_at), read_once(thread.deadline), read_once(thread.look_at)});
  return over == no_time ? no_time : std::max(over, read_once(thread.local));
}

std::optional<Turn> next_turn(const Arena& arena) {
  Turn best{.at = no_time};
  const auto consider = [&](std::uint32_t thread, Ticks at) {
    if (at < best.at) {
      best.next = best.at;
      best.thread = thread;
      best.at = at;
    } else {
      best.next = std::min(best.next, at);
    }
  };
  // An alarm goes to the first thread of its process that waits in one of our calls; other timers go to the
  // NIC's thread, if there is one, whose most of them are.
  std::array<std::uint32_t, max_processes> first, helper;
  first.fill(max_threads);
  helper.fill(max_threads);
  const auto each = [&](auto use) {
    for (std::uint32_t i = 0; i < used(arena); ++i) {
      const ThreadRecord& thread = arena.threads[i];
      if (waits(thread)) use(i, thread, process_of(thread));
    }
  };
  each([&](std::uint32_t i, const ThreadRecord& thread, std::uint32_t process) {
    const Wait wait = read_once(thread.wait);
    if (wait == Wait::memory || wait == Wait::kernel) return;  // they cannot run a timer
    std::uint32_t& place = first[process];
    if (place == max_threads) place = i;
    if (thread.helper != 0 && helper[process] == max_threads) helper[process] = i;
  });
  each([&](std::uint32_t i, const ThreadRecord& thread, std::uint32_t number) {
    const auto& process = arena.processes[number];
    const std::uint32_t timers = helper[number] != max_threads ? helper[number] : first[number];
    Ticks due = no_time;
    if (i == timers) due = std::min(due, read_once(process.timer_due));
    if (i == first[number]) due = std::min(due, read_once(process.alarm_due));
    const Ticks over = end_of_wait(thread);
    consider(i, due == no_time ? over : std::min(over, std::max(due, read_once(thread.local))));
  });
  if (best.at == no_time) return std::nullopt;
  return best;
}

bool will_go_on(const Arena& arena) {
  for (std::uint32_t i = 0; i < used(arena); ++i) {
    const ThreadRecord& thread = arena.threads[i];
    if (waits(thread) && thread.helper == 0 && thread.wait != Wait::packets && end_of_wait(thread) != no_time)
      return true;
  }
  return std::ranges::any_of(arena.processes,
                             [](const auto& process) { return process.alarm_due != no_time; });
}

void release_pollers(Arena& arena, std::uint32_t by, Ticks at) {
  for_each_waiting(arena, [&](ThreadRecord& thread) {
    if (&thread != &arena.threads[by] && thread.process == arena.threads[by].process &&
        (thread.wait == Wait::packets || thread.wait == Wait::memory))
      thread.ready_at = std::min(thread.ready_at, at);
  });
}

void let_look(Arena& arena, Ticks at) {
  for_each_waiting(arena, [&](ThreadRecord& thread) {
    if (thread.wait == Wait::descriptors) thread.look_at = std::min(thread.look_at, at);
  });
}

void let_pollers_look(Arena& arena, Ticks at, std::optional<std::uint32_t> process) {
  for_each_waiting(arena, [&](ThreadRecord& thread) {
    if (thread.wait == Wait::packets && (!process || process_of(thread) == *process))
      thread.look_at = std::min(thread.look_at, at);
  });
}

bool can_take_later(const Arena& arena, std::uint32_t process) {
  const std::uint32_t own = read_once(arena.processes[process].packet_thread);
  if (own >= max_threads) return false;
  const ThreadRecord& taker = arena.threads[own];
  if (!waits(taker) || taker.wait != Wait::descriptors || taker.process != process) return false;
  for (std::uint32_t i = 0; i < used(arena); ++i) {
    const ThreadRecord& thread = arena.threads[i];
    if (thread.process == process && waits(thread) && thread.wait == Wait::memory) return false;
  }
  return true;
}

std::optional<Turn> taker_before(const Arena& arena, const Turn& turn) {
  const ThreadRecord& thread = arena.threads[turn.thread];
  if (read_once(thread.wait) == Wait::packets || !can_take_later(arena, process_of(thread)))
    return std::nullopt;
  const std::uint32_t own = read_once(arena.processes[process_of(thread)].packet_thread);
  if (own == turn.thread || own >= max_threads) return std::nullopt;
  return Turn{.thread = own, .at = std::max(turn.at, arena.threads[own].local), .next = turn.at};
}

void wake_for_packets(Arena& arena, std::uint32_t process, Ticks at) {
  ThreadRecord* poller = nullptr;
  for_each_waiting(arena, [&](ThreadRecord& thread) {
    if (thread.process != process || thread.wait != Wait::packets) return;
    if (poller == nullptr || thread.order < poller->order) poller = &thread;
  });
  const std::uint32_t own = read_once(arena.processes[process].packet_thread);
  if (poller == nullptr && own < max_threads && waits(arena.threads[own]) &&
      arena.threads[own].process == process)
    poller = &arena.threads[own];
  if (poller != nullptr) poller->ready_at = std::min(poller->ready_at, at);
}

}  // namespace weir::twin
