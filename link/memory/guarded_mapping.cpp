#include "link/memory/guarded_mapping.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>

#include "link/memory/fault_signal.hpp"

namespace weir::link {

// What the handler knows of one guarded mapping. The handler may run in any thread while entries come and go,
// so setting `begin` takes an entry, and it counts once `end` is set.
struct GuardedMapping::Guard {
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::atomic<bool> lost = false;

  bool holds(std::uintptr_t at) const {
    const std::uintptr_t before = end.load(std::memory_order_acquire);
    return at < before && at >= begin.load(std::memory_order_acquire) &&
           end.load(std::memory_order_acquire) == before;
  }
};

struct Guards {
  std::array<GuardedMapping::Guard, 4096> entries;
  std::uintptr_t page = 4096;
  bool mended = false;

  Guards();
  GuardedMapping::Guard* take(std::uintptr_t begin, std::uintptr_t end);
  bool cover(std::uintptr_t at);

  static Guards& of_this_process() {
    static auto* const all = new Guards;
    return *all;
  }
};

namespace {

Guards* handlers = nullptr;  // of_this_process(), for the handler

bool cover(std::uintptr_t at, const sigset_t&) { return handlers->cover(at); }

}  // namespace

Guards::Guards() : page(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))) {
  handlers = this;
  mended = mend_faults(SIGBUS, link::cover);
}

GuardedMapping::Guard* Guards::take(std::uintptr_t begin, std::uintptr_t end) {
  if (!mended) return nullptr;
  for (GuardedMapping::Guard& guard : entries) {
    std::uintptr_t none = 0;
    if (!guard.begin.compare_exchange_strong(none, begin, std::memory_order_acq_rel)) continue;
    guard.lost.store(false, std::memory_order_relaxed);
    guard.end.store(end, std::memory_order_release);
    return &guard;
  }
  return nullptr;
}

// Async-signal-safe. If the file was cut short, the pages behind this one are gone too. If the file's pages
// are larger than ours, the whole mapping is replaced.
bool Guards::cover(std::uintptr_t at) {
  for (GuardedMapping::Guard& guard : entries) {
    if (!guard.holds(at)) continue;
    const std::uintptr_t begin = guard.begin.load(), end = guard.end.load();
    guard.lost.store(true, std::memory_order_release);
    GuardedMapping::any_lost_.store(true, std::memory_order_release);
    for (const std::uintptr_t from : {at / page * page, begin}) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      void* const place = reinterpret_cast<void*>(from);
      if (::mmap(place, end - from, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
        return true;
    }
    return false;
  }
  return false;
}

std::optional<GuardedMapping> GuardedMapping::of_file(int fd, std::size_t bytes) {
  auto mapping = Mapping::of_file(fd, bytes, Mapping::Rights::read_write);
  if (!mapping) return std::nullopt;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping->data());
  const std::uintptr_t page = Guards::of_this_process().page;
  Guard* const guard = Guards::of_this_process().take(begin, begin + (bytes + page - 1) / page * page);
  if (guard == nullptr) return std::nullopt;
  return GuardedMapping(std::move(*mapping), *guard);
}

// Runs before the pages can become anybody else's.
GuardedMapping::~GuardedMapping() {
  if (guard_ == nullptr) return;
  guard_->end.store(0, std::memory_order_seq_cst);
  guard_->begin.store(0, std::memory_order_seq_cst);
}

bool GuardedMapping::lost() const { return guard_->lost.load(std::memory_order_acquire); }

}  // namespace weir::link
