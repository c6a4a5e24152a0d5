// How long a thread ran and how long it waited for a CPU, as the kernel counts it: whether figures are those
// of the server or of a busy machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::benchmark {

struct Scheduling {
  std::uint64_t ran_ns = 0;
  std::uint64_t waited_ns = 0;  // ready to run while others had the CPU
  std::uint64_t times = 0;      // how often it got a CPU

  bool operator==(const Scheduling&) const = default;

  // From `before` until this, without what it takes to wake a thread even where no other wants the CPU: a few
  // microseconds each time, more in a virtual machine.
  std::uint64_t waited_for_others_ns(const Scheduling& before) const {
    constexpr std::uint64_t wake_ns = 10'000;
    const auto waited = waited_ns - std::min(before.waited_ns, waited_ns);
    return waited - std::min(waited, wake_ns * (times - std::min(before.times, times)));
  }
};

// Reads the text of /proc/PID/task/TID/schedstat: three numbers. nullopt: it is something else.
std::optional<Scheduling> parse_schedstat(std::string_view);

// nullopt: the kernel does not count.
std::optional<Scheduling> scheduling_of_this_thread(const std::string& file = "/proc/thread-self/schedstat");

}  // namespace weir::benchmark
