// The event that a command causes for its key. A command that causes other events, or events for several
// keys, reports them itself.
#pragma once

#include "kv/command/key_events.hpp"

namespace weir::kv {

struct Command;

KeyEvent usual_event(const Command& command);

}  // namespace weir::kv
