#include "sockets/runtime.hpp"

#include <sys/syscall.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>
#include <string>

#include "link/filtered_calls.hpp"
#include "sockets/calls/held_signals.hpp"
#include "sockets/device.hpp"
#include "sockets/lent_waiter.hpp"
#include "sockets/settings.hpp"
#include "sockets/waiter.hpp"

namespace weir::sockets {
namespace {

// What a filter on programs of one thread and TCP may not expect. A filter that the program installs later
// makes us step aside (Connections::step_aside()).
constexpr std::array<long, 16> needed_calls{SYS_process_vm_readv,
                                            SYS_process_vm_writev,
                                            SYS_memfd_create,
                                            SYS_eventfd2,
                                            SYS_epoll_create1,
                                            SYS_ppoll,
                                            SYS_timerfd_create,
                                            SYS_timerfd_settime,
                                            SYS_flock,
                                            SYS_ftruncate,
                                            SYS_sendmsg,
                                            SYS_clone3,
                                            SYS_openat,
                                            SYS_mknodat,
                                            SYS_dup3,
                                            SYS_write};

// State that a child of fork() makes anew.
struct Shared {
  SectionMutex mutex;
  bool tried_table = false, tried_device = false;
  std::unique_ptr<Table> table;
  Device* device = nullptr;
};
Shared& shared() {
  static Shared& made = *new Shared;
  return made;
}
constinit std::atomic<Table*> the_table{nullptr};

// A folder that somebody opened to others would otherwise turn RDMA off without a word.
void complain_of_table(const std::string& directory, const std::string& why) {
  if (why_not_private(directory).empty())
    trace("no connection changes carriers: %s", why.c_str());
  else
    std::fprintf(stderr, "weir sockets: no connection changes to RDMA: %s\n", why.c_str());
}

}  // namespace

void runtime_forgets_parent() {
  forget_lent_waiters();
  wakers_forget_parent();
  Shared& all = shared();
  // The parent's table stays mapped: connections of the parent still use their entries there.
  (void)all.table.release();
  new (&all) Shared;
  the_table.store(nullptr);
}

Table* table() {
  if (Table* const known = the_table.load(std::memory_order_acquire)) return known;
  Shared& all = shared();
  const std::scoped_lock lock(all.mutex);
  if (!all.tried_table) {
    all.tried_table = true;
    std::string why = "a seccomp filter forbids system calls that it takes";
    const std::string directory = table_directory();
    if (link::survives(needed_calls)) all.table = Table::open(directory, why);
    if (!all.table) complain_of_table(directory, why);
    the_table.store(all.table.get(), std::memory_order_release);
  }
  return all.table.get();
}

Pace& pace_to(std::uint32_t process) {
  static constinit std::array<Pace, max_processes> paces{};
  return paces[process % max_processes];
}

void leave_table() {
  if (Table* const known = the_table.load()) known->leave();
}

Device* device() {
  Shared& all = shared();
  const std::scoped_lock lock(all.mutex);
  if (!all.tried_device) {
    all.tried_device = true;
    std::string why;
    all.device = Device::open(settings().ring_bytes, why);
    if (all.device == nullptr) trace("no connection changes carriers: %s", why.c_str());
  }
  return all.device;
}

}  // namespace weir::sockets
