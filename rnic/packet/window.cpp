#include "rnic/packet/window.hpp"

#include <algorithm>
#include <mutex>

namespace weir::rnic::packet {
namespace {

constexpr std::uint64_t grows_by = 1024;  // bytes per round trip once the window stops doubling
// After this long without a notification the limit is lifted, whatever the timers say.
constexpr std::uint64_t forgotten_after_ns = 100'000'000;

// The paper's times, to which the peer's notification point conforms. The steps fit a window of this many
// bytes. Many queue pairs share a window, and each gets notifications.
congestion::DcqcnParameters parameters_of(const Window::Limits& limits) {
  congestion::DcqcnParameters parameters;
  parameters.additive_increase = limits.most / 256.0;
  parameters.hyper_increase = limits.most / 64.0;
  parameters.minimum_rate = limits.least;
  parameters.decrease_interval = parameters.notification_interval;
  parameters.increase_bytes = 0;
  return parameters;
}

}  // namespace

void Window::acknowledged(std::uint64_t charged, std::uint64_t now_ns, std::uint64_t round_trip_ns) {
  const bool late = round_trip_ns >= late_ns && now_ns >= held_down_until_ns_.load(std::memory_order_relaxed);
  const std::uint32_t most = late ? limits_.most_of_late : limits_.most;
  const std::uint32_t now = bytes();
  const bool doubles = now < threshold_.load(std::memory_order_relaxed) || (late && now >= limits_.most);
  const std::uint64_t more = doubles ? charged : charged * grows_by / now;
  bytes_.store(static_cast<std::uint32_t>(std::min<std::uint64_t>(now + more, most)),
               std::memory_order_relaxed);
}

void Window::lost(std::uint64_t now_ns, std::uint64_t round_trip_ns) {
  const std::uint64_t last = last_loss_ns_.load(std::memory_order_relaxed);
  if (last != 0 && now_ns - last < round_trip_ns) return;
  last_loss_ns_.store(now_ns, std::memory_order_relaxed);
  if (bytes() > limits_.most) held_down_until_ns_.store(now_ns + held_down_ns, std::memory_order_relaxed);
  const std::uint32_t half = std::clamp(bytes() / 2, limits_.least, limits_.most);
  threshold_.store(half, std::memory_order_relaxed);
  bytes_.store(half, std::memory_order_relaxed);
}

void Window::notified(std::uint64_t now_ns) {
  const std::lock_guard lock(notifying_);
  reaction_.on_cnp(parameters_of(limits_), now_ns, limits_.most);
  last_notified_ns_ = now_ns;
  show();
}

void Window::recover(std::uint64_t now_ns) {
  const std::lock_guard lock(notifying_);
  if (now_ns - last_notified_ns_ < forgotten_after_ns)
    reaction_.advance(parameters_of(limits_), now_ns, limits_.most);
  else
    reaction_ = {};
  show();
}

// Call with `notifying_` held.
void Window::show() {
  due_ns_.store(reaction_.next_due(), std::memory_order_relaxed);
  notified_.store(reaction_.limited() ? static_cast<std::uint32_t>(reaction_.rate()) : ~0u,
                  std::memory_order_relaxed);
}

}  // namespace weir::rnic::packet
