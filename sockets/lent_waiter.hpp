// Waiters for calls that wait. A process has as many as calls have ever waited at once; they are lent, taken
// back and never freed. Allocates nothing: a signal handler may wait that interrupted malloc().
//
// Threading: any thread, and its signal handlers.
#pragma once

#include <cstdint>

#include "sockets/waiter.hpp"

namespace weir::sockets {

class LentWaiter {
 public:
  explicit LentWaiter(Table* table);  // null: gets none
  ~LentWaiter();
  LentWaiter(const LentWaiter&) = delete;
  LentWaiter& operator=(const LentWaiter&) = delete;
  Waiter* get() const { return waiter_; }  // null: no bell or descriptor is left

 private:
  Waiter* waiter_ = nullptr;
  std::uint32_t place_ = 0;
};

void forget_lent_waiters();  // in a child of fork(): they are the parent's
void drop_idle_waiters();    // the process will make no system call of ours any more

}  // namespace weir::sockets
