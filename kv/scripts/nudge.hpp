// Interrupts the thread that runs a script every few milliseconds, so that the script looks at the clock.
//
// Lua's hook can count instructions, but one instruction may take a hundred milliseconds: it joins or
// compares texts of a hundred megabytes. Reading the clock before each would make all scripts slow. So a
// timer of the system's sends this thread SIGURG, which does no harm where nobody waits for it, and the
// signal's handler changes the hook to "after the next instruction", which Lua allows in a handler
// (lua_sethook). Between scripts the timer runs out and is not set again, so scripts in quick succession cost
// one signal in interval_ms.
//
// Without a timer (the system has none left) the hook counts instructions only.
//
// Threading: one thread at a time runs scripts; the timer is made anew for another one.
#pragma once

#include <ctime>
#include <lua.hpp>
#include <optional>

#include "kv/scripts/budget.hpp"

namespace weir::kv {

class Nudge {
 public:
  static constexpr int interval_ms = 5;

  // Sets `hook` for one instruction in the coroutine that runs then.
  explicit Nudge(lua_Hook hook) : hook_(hook) {}
  ~Nudge();
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;

  // The script on this thread runs from here on, or goes on; null: it has ended or is suspended.
  void watch(Budget* budget);

 private:
  static void on_signal(int number);
  void make_timer();
  void set_timer();  // also within the signal's handler

  const lua_Hook hook_;
  Budget* volatile budget_ = nullptr;
  volatile bool set_ = false;  // the timer runs
  std::optional<timer_t> timer_;
};

}  // namespace weir::kv
