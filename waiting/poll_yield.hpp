// When a thread that polls in vain gives its processor away. Pure: the yield and the clock are passed in.
//
// What it waits for may need this very processor: then each turn without a yield costs both sides a scheduler
// slice (8 ms). If the other side was last seen on this processor, the thread yields after a few polls in a
// row. Otherwise it yields after many, which costs one context switch, or nothing where every thread has a
// core of its own; but beside a program that never stops it costs that program's whole slice, and the other
// side, which runs elsewhere, waits as long. So after a yield that took long it polls on without, for a while
// (CoreContention).
//
// Where the other side's part comes through the kernel, a turn takes 10 us and not 0.2, and yielding in any
// crowd was better (64 bytes there and back between two hosts, two busy loops on each core: 62 to 106 us on
// average, without yields 88 to 312; in memory 150 to 410, without 6 to 30).
//
// The polls must be in a row: a program that polls a few times between sleeps must not lose its time slice.
//
// Threading: one for each thread that polls; the count of polls in a row belongs to what is polled.
#pragma once

#include <cstdint>

#include "waiting/core_contention.hpp"

namespace weir::waiting {

class PollYield {
 public:
  static constexpr std::uint32_t polls_before = 128;  // about 2 us in memory
  static constexpr std::uint32_t polls_beside_other = 8;

  // After the `polls`-th poll in vain in a row. True: it has yielded, so a look may find more.
  enum class Way { memory, kernel };  // by which what the thread waits for comes
  template <class OtherIsHere, class Yield, class Now>
  bool polled_in_vain(std::uint32_t polls, Way way, OtherIsHere other_is_here, Yield yield, Now now) {
    if (polls % polls_beside_other != 0) return false;
    if (other_is_here()) {
      yield();
      return true;
    }
    if (polls % polls_before != 0) return false;
    const CoreContention::TimePoint before = now();
    if (way == Way::memory && contention_.present(before)) return false;
    yield();
    contention_.yielded(before, now());
    return true;
  }

 private:
  CoreContention contention_;
};

}  // namespace weir::waiting
