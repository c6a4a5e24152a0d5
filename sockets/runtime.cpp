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
#include "sockets/device.hpp"
#include "sockets/held_signals.hpp"
#include "sockets/settings.hpp"

namespace weir::sockets {
namespace {

// What a filter on programs of one thread and TCP may not expect. A filter that the program installs later
// makes us step aside (Connections::step_aside()).
constexpr std::array<long, 12> needed_calls{SYS_process_vm_readv, SYS_process_vm_writev, SYS_memfd_create,
                                            SYS_eventfd2,         SYS_epoll_create1,     SYS_ppoll,
                                            SYS_timerfd_create,   SYS_timerfd_settime,   SYS_flock,
                                            SYS_ftruncate,        SYS_sendmsg,           SYS_clone3};

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
constinit std::atomic<std::uint32_t> generation{0};

// A folder that somebody opened to others would otherwise turn RDMA off without a word.
void complain_of_table(const std::string& why) {
  if (why_not_private(settings().directory).empty())
    trace("no connection changes carriers: %s", why.c_str());
  else
    std::fprintf(stderr, "weir sockets: no connection changes to RDMA: %s\n", why.c_str());
}

struct ThreadWaiter {
  std::unique_ptr<Waiter> waiter;
  std::uint32_t made_in = ~0u;
  bool lent = false;
  // Handlers of exit() run after the main thread's objects are destroyed, and may still wait.
  static thread_local bool ended;
  ~ThreadWaiter() {
    ended = true;
    if (made_in != generation.load()) (void)waiter.release();
  }
};

thread_local bool ThreadWaiter::ended = false;
thread_local ThreadWaiter thread_waiter;

}  // namespace

void runtime_forgets_parent() {
  generation.fetch_add(1);
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
    if (link::survives(needed_calls)) all.table = Table::open(settings().directory, why);
    if (!all.table) complain_of_table(why);
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

void drop_own_waiter() {
  const Section section;
  ThreadWaiter& mine = thread_waiter;
  if (mine.made_in == generation.load() && !mine.lent) mine.waiter.reset();
}

LentWaiter::LentWaiter() {
  if (table() == nullptr) return;
  const Section section;
  if (ThreadWaiter::ended) {
    own_ = Waiter::make(*table());
    waiter_ = own_.get();
    return;
  }
  ThreadWaiter& mine = thread_waiter;
  if (mine.made_in != generation.load()) {
    (void)mine.waiter.release();
    mine.made_in = generation.load();
    mine.lent = false;
  }
  if (mine.lent) {
    own_ = Waiter::make(*table());
    waiter_ = own_.get();
    return;
  }
  if (!mine.waiter) mine.waiter = Waiter::make(*table());
  waiter_ = mine.waiter.get();
  mine.lent = waiter_ != nullptr;
}

LentWaiter::~LentWaiter() {
  const Section section;
  if (own_ == nullptr && waiter_ != nullptr) thread_waiter.lent = false;
  own_.reset();
}

}  // namespace weir::sockets
