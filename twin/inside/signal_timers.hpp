// Virtual timers of timer_create().
#pragma once

#include "twin/inside/baton.hpp"

namespace weir::twin {

// When the first of them is due.
Ticks first_signal_timer();
// Those that are due send their signals, or start their threads. True: a signal was sent.
bool run_signal_timers();
// timers.cpp: they were set or have expired, and another may be the first that is due.
void announce_timers();
// In a child: its parent's timers are not its own.
void forget_signal_timers();

}  // namespace weir::twin
