// State that the connections of this process share: the table, the device, the service thread.
//
// Threading: any thread; made on first use. A child of fork() makes its own and does not use its parent's
// table place, device, waiters or service thread.
#pragma once

#include <cstdint>

#include "sockets/pace.hpp"
#include "sockets/table.hpp"

namespace weir::sockets {

// Null: the table cannot be had; a trace line has said why.
Table* table();
class Device;
Device* device();    // null: no device
void leave_table();  // the process is about to end
// In a child of fork(): the table, the device and the waiters of its threads are the parent's.
void runtime_forgets_parent();
// What we have learned about sending to another process, by its number in the table.
Pace& pace_to(std::uint32_t process);

}  // namespace weir::sockets
