// Virtual timers that are descriptors, and alarms.
#pragma once

namespace weir::twin {

void timer_closed(int descriptor);
// Whether it can be read without waiting. descriptor_calls.cpp
bool descriptor_is_ready(int descriptor);

}  // namespace weir::twin
