// Looks at what the calling thread waits for, for a while, before it sleeps.
//
// WEIR_SPIN sets the longest time in microseconds, 0 never; set, it also holds where no core is idle. Unset:
// 50, while a core is idle.
//
// Threading: any thread, and its signal handlers.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>

#include "waiting/idle_core.hpp"
#include "waiting/looking.hpp"

namespace weir::verbs::look {

inline constexpr char spin_variable[] = "WEIR_SPIN";

struct Setting {
  std::chrono::microseconds longest{50};
  bool always = false;  // also where no core is idle
};
// Nothing: no whole number of microseconds from 0 to 1,000,000.
std::optional<Setting> read_setting(std::string_view words);

// The calling thread's right to look; while it exists another thread may have to sleep instead.
class Turn {
 public:
  Turn();
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  explicit operator bool() const { return budget_ != nullptr; }
  bool again() { return waiting::look_again(*budget_); }

 private:
  waiting::PollBudget* budget_ = nullptr;
};

// True: `ready` said so. False: sleep.
template <class Ready>
bool before_sleep(Ready ready) {
  Turn turn;
  if (!turn) return false;
  while (turn.again())
    if (ready()) return true;
  return false;
}

}  // namespace weir::verbs::look
