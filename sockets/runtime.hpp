// What the connections of this process share: settings, the table, the device, the service thread.
//
// Threading: any thread; made on first use. fork() gives the child a new one, without its parent's table
// place, device, waiters and service thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sockets/table.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {

struct Settings {
  bool off = false;
  bool trace = false;
  std::uint32_t after_calls = 8;       // WEIR_SOCKETS_AFTER: of the program, before a peer is looked for
  std::uint64_t change_every = 0;      // WEIR_SOCKETS_CHANGE_EVERY: bytes; 0: never without need. For tests
  std::uint32_t ring_bytes = 1 << 16;  // WEIR_SOCKETS_RING: bytes, a power of two
  std::chrono::microseconds spin{50};  // WEIR_SOCKETS_SPIN: how long to look before a sleep
  std::string directory;
};

const Settings& settings();
// Null: it cannot be had, which was said if asked for.
Table* table();
class Device;
Device* device();    // null: there is none
void leave_table();  // the process is about to end
// One a thread, for calls that wait. Null: no bell or descriptor is left.
Waiter* thread_waiter();
// Writes a line to standard error if WEIR_SOCKETS=trace.
void trace(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace weir::sockets
