// Virtual timers that are descriptors, and alarms.
#pragma once

namespace weir::twin {

void timer_closed(int descriptor);
// Timers were set or have expired: when the first is due.
void announce_timers();
// In a child: alarms and timers with signals are not inherited.
void forget_alarms();
// Whether it can be read without waiting. descriptor_calls.cpp
bool descriptor_is_ready(int descriptor);

}  // namespace weir::twin
