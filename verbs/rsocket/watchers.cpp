#include "verbs/rsocket/watchers.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "link/not_cancelled.hpp"
#include "rnic/memory/per_thread.hpp"

namespace weir::rsocket {
namespace {
// How long a thread sleeps that could not get a descriptor to be woken by.
constexpr int blind_sleep_ms = 10;
}  // namespace

Waiter& Waiter::mine() {
  Waiter& waiter = rnic::per_thread<Waiter>();
  waiter.open();
  return waiter;
}

void Waiter::open() {
  if (event_ && owner_ == ::getpid()) return;
  event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  owner_ = ::getpid();
}

void Waiter::changed() {
  const std::uint64_t one = 1;
  if (event_) [[maybe_unused]]
    const auto written = ::write(event_.get(), &one, sizeof one);
}

void Waiter::clear() {
  std::uint64_t count;
  if (event_) [[maybe_unused]]
    const auto got = ::read(event_.get(), &count, sizeof count);
}

int Waiter::sleep(std::vector<pollfd>& others, int timeout_ms) {
  if (!event_ && (timeout_ms < 0 || timeout_ms > blind_sleep_ms)) timeout_ms = blind_sleep_ms;
  others.push_back({.fd = event_.get(), .events = POLLIN, .revents = 0});
  const int ready = ::poll(others.data(), others.size(), timeout_ms);
  others.pop_back();
  return ready;
}

void WatchList::remove(Watcher& watcher) {
  const auto found = std::find(watchers_.begin(), watchers_.end(), &watcher);
  if (found != watchers_.end()) watchers_.erase(found);
}

void WatchList::wake_all() {
  if (watchers_.empty()) return;
  const link::NotCancelled whole;  // or the others would sleep on
  for (Watcher* watcher : watchers_) watcher->changed();
}

}  // namespace weir::rsocket
