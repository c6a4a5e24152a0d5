// What the connections of this process share: settings, the table, the device, the service thread.
//
// Threading: any thread; made on first use. fork() gives the child a new one, without its parent's table
// place, device, waiters and service thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sockets/pace.hpp"
#include "sockets/rules.hpp"
#include "sockets/table.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {

struct Settings {
  bool off = false;
  bool trace = false;
  bool report = false;                 // what became of all connections, when the process ends
  Rules rules;                         // WEIR_SOCKETS_RULES
  std::uint32_t after_calls = 8;       // WEIR_SOCKETS_AFTER: of the program, before a peer is looked for
  std::uint64_t change_every = 0;      // WEIR_SOCKETS_CHANGE_EVERY: bytes; 0: never without need. For tests
  std::uint32_t ring_bytes = 1 << 16;  // WEIR_SOCKETS_RING: bytes, a power of two
  std::chrono::microseconds spin{50};  // WEIR_SOCKETS_SPIN: how long to look before a sleep
  bool wakes_by_ring = false;  // WEIR_SOCKETS_SLEEPERS=ring: also where the receiver sleeps. For tests
  std::string directory;
};

const Settings& settings();
// Programs clear their environment (nginx's workers): the NIC is to find what it reads there as it was at the
// start.
void keep_environment();
// Null: it cannot be had, which was said if asked for.
Table* table();
class Device;
Device* device();    // null: there is none
void leave_table();  // the process is about to end
// The thread's waiter, for a call that waits; one of its own for a call in a signal handler that interrupted
// such a call.
class LentWaiter {
 public:
  LentWaiter();
  ~LentWaiter();
  LentWaiter(const LentWaiter&) = delete;
  LentWaiter& operator=(const LentWaiter&) = delete;
  Waiter* get() const { return waiter_; }  // null: no bell or descriptor is left

 private:
  std::unique_ptr<Waiter> own_;
  Waiter* waiter_ = nullptr;
};
// What was found out about sending to another process, by its number in the table.
Pace& pace_to(std::uint32_t process);
// Writes a line to standard error if WEIR_SOCKETS=trace.
void trace(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace weir::sockets
