// Looks at rings for a short time before a sleep (waiting/looking.hpp).
#pragma once

#include "sockets/settings.hpp"
#include "waiting/looking.hpp"

namespace weir::sockets {

using waiting::begin_looking, waiting::look_again, waiting::looking_thread, waiting::PollBudget;

inline PollBudget& thread_budget() {
  static thread_local PollBudget budget(settings().spin);
  return budget;
}

}  // namespace weir::sockets
