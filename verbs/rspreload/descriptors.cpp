#include "verbs/rspreload/descriptors.hpp"

#include <array>
#include <atomic>
#include <cstddef>

namespace weir::rspreload {
namespace {

// As many as fs.nr_open allows a process by default. A page of it exists once a descriptor there is used.
constexpr std::size_t most_descriptors = 1 << 20;
constinit std::array<std::atomic<Kind>, most_descriptors> kinds{};

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
  if (place != nullptr) place->store(kind, std::memory_order_relaxed);
  return place != nullptr;
}

Kind take_kind(int fd) {
  auto* place = place_of(fd);
  return place != nullptr ? place->exchange(Kind::plain, std::memory_order_relaxed) : Kind::plain;
}

}  // namespace weir::rspreload
