#include "sockets/descriptors.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weir::sockets {
namespace {

constexpr std::size_t most_descriptors = 1 << 20;
// A pointer to a Connection, or to an EventSet with the lowest bit set. Pages are allocated on first use.
constinit std::array<std::atomic<std::uintptr_t>, most_descriptors> places{};
constinit std::atomic<unsigned> used{0};

std::atomic<std::uintptr_t>* place_of(int fd) {
  return fd >= 0 && static_cast<std::size_t>(fd) < places.size() ? &places[static_cast<std::size_t>(fd)]
                                                                 : nullptr;
}

void set_place(int fd, std::uintptr_t value) {
  auto known = used.load();
  while (known <= static_cast<unsigned>(fd) &&
         !used.compare_exchange_weak(known, static_cast<unsigned>(fd) + 1)) {
  }
  place_of(fd)->store(value, std::memory_order_release);
}

}  // namespace

bool Descriptors::has_place_for(int fd) { return place_of(fd) != nullptr; }

Connection* Descriptors::find(int fd) {
  const auto* place = place_of(fd);
  const std::uintptr_t value = place != nullptr ? place->load(std::memory_order_acquire) : 0;
  return (value & 1) == 0 ? reinterpret_cast<Connection*>(value) : nullptr;
}

EventSet* Descriptors::find_set(int fd) {
  const auto* place = place_of(fd);
  const std::uintptr_t value = place != nullptr ? place->load(std::memory_order_acquire) : 0;
  return (value & 1) != 0 ? reinterpret_cast<EventSet*>(value & ~std::uintptr_t{1}) : nullptr;
}

bool Descriptors::is_known(int fd) {
  const auto* place = place_of(fd);
  return place != nullptr && place->load(std::memory_order_relaxed) != 0;
}

unsigned Descriptors::count() { return used.load(std::memory_order_relaxed); }

int Descriptors::next_known(unsigned first, unsigned last) {
  const auto end = used.load();
  for (unsigned fd = first; fd < end && fd <= last; ++fd)
    if (places[fd].load(std::memory_order_relaxed) != 0) return static_cast<int>(fd);
  return -1;
}

void Descriptors::put(int fd, Connection& it) { set_place(fd, reinterpret_cast<std::uintptr_t>(&it)); }

void Descriptors::put(int fd, EventSet& set) { set_place(fd, reinterpret_cast<std::uintptr_t>(&set) | 1); }

void Descriptors::clear(int fd) { place_of(fd)->store(0); }

}  // namespace weir::sockets
