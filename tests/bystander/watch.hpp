// What the clients saw: how long each request of a bystander took, and what went wrong for victims. Pure,
// except for the clock values that its user passes in.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace weir::bystander {

using Clock = std::chrono::steady_clock;

inline constexpr std::array transports{"tcp", "unix", "tls", "rdma", "rdma+tls"};

// What bystanders do: ping over a connection that they keep; connect, ping once and leave; do that slowly; or
// ask for what takes a certain time.
enum class Visit : std::uint8_t { standing, fresh, slow, timed };
inline constexpr std::size_t visits = 4;

struct Wait {
  std::uint16_t during = 0;  // the number of the misdeed, from the caller
  std::uint8_t transport = 0;
  Visit visit = Visit::standing;
  std::uint32_t us = 0;
};

// Sorted waits and their statistics; 0 if there are none.
class Waits {
 public:
  explicit Waits(std::vector<std::uint32_t> us);
  std::size_t count() const { return us_.size(); }
  std::uint32_t worst_us() const { return us_.empty() ? 0 : us_.back(); }
  std::uint32_t percentile_us(double percent) const;

 private:
  std::vector<std::uint32_t> us_;
};

// A request in progress; there is one for each transport and kind of visit.
class Watch {
 public:
  void during(std::uint16_t misdeed) { during_ = misdeed; }
  void asks(std::size_t transport, Visit visit, Clock::time_point now) { open(transport, visit) = now; }
  // Counts for the misdeed that is running when it ends.
  void answered(std::size_t transport, Visit visit, Clock::time_point now);
  // The longest wait of requests that are still unanswered, beyond `script_holds` where a command needs keys:
  // so long may a script hold these, as in Redis, before others are told BUSY (busy-reply-threshold).
  static constexpr std::chrono::seconds script_holds{5};
  std::chrono::microseconds longest_open(Clock::time_point now) const;
  // Whether every request that began before `then` has ended, but those that need keys.
  bool all_since(Clock::time_point then) const;
  // Ends requests that were never answered as if they were answered now.
  void give_up(Clock::time_point now);

  template <class Which>
  Waits select(Which which) const {
    std::vector<std::uint32_t> us;
    for (const Wait& wait : waits_)
      if (which(wait)) us.push_back(wait.us);
    return Waits(std::move(us));
  }

 private:
  static constexpr Clock::time_point never{};
  Clock::time_point& open(std::size_t transport, Visit visit) {
    return open_[visits * transport + static_cast<std::size_t>(visit)];
  }
  static bool needs_keys(std::size_t place) { return static_cast<Visit>(place % visits) == Visit::timed; }
  std::uint16_t during_ = 0;
  std::array<Clock::time_point, visits * transports.size()> open_{};
  std::vector<Wait> waits_;
};

// "0.31", "12", "1480": milliseconds as shown in a table.
std::string milliseconds(std::uint32_t us);

}  // namespace weir::bystander
