#include "verbs/rspreload/descriptors.hpp"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace weir::rspreload {
namespace {

// As many as fs.nr_open allows a process by default. A page of it exists once a descriptor there is used.
constexpr std::size_t most_descriptors = 1 << 20;
constinit std::array<std::atomic<Kind>, most_descriptors> kinds{};
// One more than the largest that was ever anything but plain, so that nobody walks along all of them.
constinit std::atomic<unsigned> used{0};

// Whose memory this is. fork() changes it, vfork() does not.
constinit std::atomic<pid_t> owner{0};
void be_owner() { owner.store(::getpid(), std::memory_order_relaxed); }
void be_owner_from_now_on() {
  static const bool once = [] {
    be_owner();
    return ::pthread_atfork(nullptr, nullptr, be_owner) == 0;
  }();
  (void)once;
}

std::atomic<Kind>* place_of(int fd) {
  return fd >= 0 && static_cast<std::size_t>(fd) < kinds.size() ? &kinds[static_cast<std::size_t>(fd)]
                                                                : nullptr;
}

}  // namespace

Kind kind_of(int fd) {
  const auto* place = place_of(fd);
  return place != nullptr ? place->load(std::memory_order_relaxed) : Kind::plain;
}

bool set_kind(int fd, Kind kind) {
  auto* place = place_of(fd);
  if (place == nullptr) return false;
  be_owner_from_now_on();
  auto known = used.load(std::memory_order_relaxed);
  while (known <= static_cast<unsigned>(fd) &&
         !used.compare_exchange_weak(known, static_cast<unsigned>(fd) + 1, std::memory_order_relaxed)) {
  }
  place->store(kind, std::memory_order_relaxed);
  return true;
}

Kind take_kind(int fd) {
  auto* place = place_of(fd);
  return place != nullptr ? place->exchange(Kind::plain, std::memory_order_relaxed) : Kind::plain;
}

bool in_borrowed_memory() { return ::getpid() != owner.load(std::memory_order_relaxed); }

int next_not_plain(unsigned first, unsigned last) {
  const auto end = used.load(std::memory_order_relaxed);
  for (unsigned fd = first; fd < end && fd <= last; ++fd)
    if (kinds[fd].load(std::memory_order_relaxed) != Kind::plain) return static_cast<int>(fd);
  return -1;
}

}  // namespace weir::rspreload
