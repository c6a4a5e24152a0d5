#include "verbs/look/before_sleep.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace weir::verbs::look {
namespace {

constexpr unsigned longest_us = 1'000'000;

unsigned cores() { return static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))); }

std::optional<unsigned> runnable() {
  const int fd = ::open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::array<char, 128> text{};
  const ssize_t got = ::read(fd, text.data(), text.size());
  ::close(fd);
  if (got <= 0) return std::nullopt;
  return waiting::runnable_in({text.data(), static_cast<std::size_t>(got)});
}

const Setting& setting() {
  static const Setting read = [] {
    if (std::getenv("WEIR_TWIN") != nullptr)
      return Setting{{}};  // its clock stands still while a thread looks
    const char* const words = std::getenv(spin_variable);
    return words != nullptr ? read_setting(words).value_or(Setting{}) : Setting{};
  }();
  return read;
}

waiting::IdleCore& idle_core() {
  static waiting::IdleCore it(cores(), runnable);
  return it;
}

waiting::PollBudget& thread_budget() {
  static thread_local waiting::PollBudget budget(setting().longest);
  return budget;
}

std::atomic<unsigned> turns{0};

}  // namespace

std::optional<Setting> read_setting(std::string_view words) {
  unsigned us = 0;
  const char* const end = words.data() + words.size();
  const auto [at, error] = std::from_chars(words.data(), end, us);
  if (error != std::errc() || at != end || us > longest_us) return std::nullopt;
  return Setting{std::chrono::microseconds(us), true};
}

Turn::Turn() {
  static const unsigned at_once = std::max(1U, cores() / 2);
  if (setting().longest.count() == 0) return;
  const auto now = waiting::PollBudget::TimePoint::clock::now();
  if (!setting().always && !idle_core().is_there(now)) return;
  if (turns.fetch_add(1, std::memory_order_relaxed) >= at_once) {
    turns.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  budget_ = &thread_budget();
  waiting::begin_looking(*budget_, now);
}

Turn::~Turn() {
  if (budget_ != nullptr) turns.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace weir::verbs::look
