// Connection management in the log of `weir trace`: a line for each event that the application takes.
#pragma once

#include "verbs/cm/event_channel.hpp"

namespace weir::cm {

// Does nothing unless this process is traced.
void trace(const Event& event);

}  // namespace weir::cm
