// Says on standard error, once a minute at most, that packets from other hosts are dropped, how many and why.
// A few are normal: the last packets of a connection that has ended. Pure; time and counts are passed in.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "link/same_host.hpp"
#include "rnic/counters.hpp"

namespace weir::verbs {

// In the order of rnic::Dropped: a word for names of metrics and fields, and the same for people.
struct DropReason {
  const char* name;
  const char* text;
};
inline constexpr std::array<DropReason, rnic::drop_reasons> drop_reasons = {{
    {"malformed", "malformed"},
    {"wrong_icrc", "with a wrong ICRC"},
    {"no_process", "for no process here"},
    {"no_queue_pair", "for no queue pair here"},
    {"wrong_source", "not from the queue pair's peer"},
    {"wrong_qkey", "with a wrong Q_Key"},
    {"outside_window", "with a PSN far from the expected one"},
    {"over_budget", "beyond what one source, or all, may ask"},
    {"unproved", "asking for connections while many others wait"},
    {"wrong_key", "without our wire key"},
}};

class DropReport {
 public:
  using Counts = std::array<std::uint64_t, rnic::drop_reasons>;
  static constexpr std::chrono::seconds interval{60};
  static constexpr std::uint64_t worth_saying = 1'000;

  static Counts counts_of(const rnic::ProcessCounters&);
  // The line to print, if it is time for one.
  std::optional<std::string> look(const Counts& now, link::Clock::time_point at);

 private:
  Counts said_{};
  std::optional<link::Clock::time_point> said_at_;
};

}  // namespace weir::verbs
