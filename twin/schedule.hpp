// Which thread of all programs runs next, as a function of what is in the arena: the one whose wait is over
// first; of several at the same time, the one with the lowest number. Pure, no I/O.
#pragma once

#include <cstdint>
#include <optional>

#include "link/fabric/arena.hpp"

namespace weir::twin {

struct Turn {
  std::uint32_t thread = 0;
  link::fabric::Ticks at = 0;
  // When another thread's wait is over, at the earliest; no_time: never of itself.
  link::fabric::Ticks next = link::fabric::no_time;
};

// The number of its process, whatever its record says.
std::uint32_t process_of(const link::fabric::ThreadRecord& thread);

// When the thread's wait is over by itself; no_time: never. It waits.
link::fabric::Ticks end_of_wait(const link::fabric::ThreadRecord& thread);

// nullopt: no wait is over by itself.
std::optional<Turn> next_turn(const link::fabric::Arena& arena);

// Whether a program's thread has something to do later by itself: it sleeps, or waits with a limit. Polls do
// not count, nor what NICs do by themselves.
bool will_go_on(const link::fabric::Arena& arena);

// The thread has given the baton back after it did something: others of its process that poll, or spin on
// memory, may find the result.
void release_pollers(link::fabric::Arena& arena, std::uint32_t thread, link::fabric::Ticks at);

// Something was written: threads that wait for descriptors look again.
void let_look(link::fabric::Arena& arena, link::fabric::Ticks at);
// Loops that poll completion queues may look at descriptors, too. `process`: whose; nullopt: all, since it
// was sent to another program.
void let_pollers_look(link::fabric::Arena& arena, link::fabric::Ticks at,
                      std::optional<std::uint32_t> process);

// Whether packets that change nothing but the process's memory may be given to it later: no thread of it
// looks at memory, and its NIC's own thread waits.
bool can_take_later(const link::fabric::Arena& arena, std::uint32_t process);

// The turn of the thread that must take packets which were held back from its process, before the thread of
// `turn` runs and may look at memory; nullopt: that takes them itself, or no thread can.
std::optional<Turn> taker_before(const link::fabric::Arena& arena, const Turn& turn);

// Packets have come for the process: the thread that polled first, otherwise its NIC's own.
void wake_for_packets(link::fabric::Arena& arena, std::uint32_t process, link::fabric::Ticks at);

}  // namespace weir::twin
