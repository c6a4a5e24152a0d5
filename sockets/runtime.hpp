// What the connections of this process share: the table, the device, the service thread.
//
// Threading: any thread; made on first use. fork() gives the child a new one, without its parent's table
// place, device, waiters and service thread.
#pragma once

#include <cstdint>
#include <memory>

#include "sockets/pace.hpp"
#include "sockets/table.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {

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

}  // namespace weir::sockets
