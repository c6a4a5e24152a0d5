#include "rnic/packet/window.hpp"

#include <algorithm>

namespace weir::rnic::packet {
namespace {

constexpr std::uint64_t grows_by = 1024;  // bytes each round trip, once it does not double any more

}  // namespace

void Window::acknowledged(std::uint64_t charged) {
  const std::uint32_t now = bytes();
  const bool doubles = now < threshold_.load(std::memory_order_relaxed);
  const std::uint64_t more = doubles ? charged : charged * grows_by / now;
  bytes_.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(now + more, limits_.most)),
               std::memory_order_relaxed);
}

void Window::lost(std::uint64_t now_ns, std::uint64_t round_trip_ns) {
  const std::uint64_t last = last_loss_ns_.load(std::memory_order_relaxed);
  if (last != 0 && now_ns - last < round_trip_ns) return;
  last_loss_ns_.store(now_ns, std::memory_order_relaxed);
  const std::uint32_t half = std::max(bytes() / 2, limits_.least);
  threshold_.store(half, std::memory_order_relaxed);
  bytes_.store(half, std::memory_order_relaxed);
}

}  // namespace weir::rnic::packet
