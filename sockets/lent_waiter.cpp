#include "sockets/lent_waiter.hpp"

#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "sockets/calls/held_signals.hpp"
#include "sockets/layout.hpp"

namespace weir::sockets {
namespace {

struct Place {
  std::atomic<bool> lent{false};
  // Its owner: the address of something of that thread's own, and where on the stack its LentWaiter is.
  std::atomic<const void*> thread{nullptr};
  std::atomic<const void*> frame{nullptr};
  bool made = false;
  alignas(Waiter) std::array<std::byte, sizeof(Waiter)> memory{};
  Waiter* waiter() { return std::launder(reinterpret_cast<Waiter*>(memory.data())); }
};

// No destructor: handlers of exit() run after those of other objects, and may still wait.
constinit std::array<Place, max_bells> places{};
constinit std::atomic<std::uint32_t> places_used{0};  // the first ones
// Where this thread got its waiter from last.
constinit thread_local std::uint32_t usual __attribute__((tls_model("initial-exec"))) = 0;

bool is_on_handlers_own_stack() {
  stack_t now{};
  return ::sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_ONSTACK) != 0;
}

// A handler left the call by longjmp(): its frame would lie below ours on the stack.
bool is_left_behind(const Place& place, const void* frame) {
  return place.thread.load() == &usual && place.frame.load() <= frame && !is_on_handlers_own_stack();
}

bool take(Place& place, const void* frame) {
  bool lent = false;
  if (!place.lent.compare_exchange_strong(lent, true) && !is_left_behind(place, frame)) return false;
  place.thread.store(&usual);
  place.frame.store(frame);
  return true;
}

}  // namespace

LentWaiter::LentWaiter(Table* table) {
  if (table == nullptr) return;
  const Section section;
  place_ = usual;
  for (std::uint32_t tries = 0; !take(places[place_], this); ++tries) {
    if (tries == places.size()) return;
    place_ = tries;
  }
  usual = place_;
  for (auto used = places_used.load();
       used <= place_ && !places_used.compare_exchange_weak(used, place_ + 1););
  Place& place = places[place_];
  if (!place.made) {
    if (const auto parts = Waiter::open(*table)) {
      new (place.memory.data()) Waiter(*table, *parts);
      place.made = true;
    } else {
      place.lent.store(false);
      return;
    }
  }
  waiter_ = place.waiter();
}

LentWaiter::~LentWaiter() {
  if (waiter_ != nullptr) places[place_].lent.store(false);
}

void forget_lent_waiters() {
  for (Place& place : std::span(places).first(places_used.load())) {
    place.made = false;
    place.lent.store(false);
  }
}

void drop_idle_waiters() {
  for (Place& place : std::span(places).first(places_used.load())) {
    bool lent = false;
    if (!place.lent.compare_exchange_strong(lent, true)) continue;
    if (place.made) std::destroy_at(place.waiter());
    place.made = false;
    place.lent.store(false);
  }
}

}  // namespace weir::sockets
