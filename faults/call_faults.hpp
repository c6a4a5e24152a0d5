// Decides which calls of a program are refused and which completions have another status, and counts them.
//
// Pure: time is passed in. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "faults/fault.hpp"

namespace weir::faults {

class CallFaults {
 public:
  struct Firing {
    std::uint64_t at_ns = 0;
    Call call{};
    std::uint64_t qp = 0;      // by order of creation; 0: the call is about none
    std::uint64_t number = 0;  // of the calls that met the conditions, from 1; 0: it was no call
  };
  struct Tally {
    std::uint64_t met = 0, fired = 0;
    std::vector<Firing> firings;  // the first of them
  };

  explicit CallFaults(Plan plan, std::size_t remembered = 10);

  // Whether any fault is about that call, so that others need not ask each time.
  bool concern(Call call) const;
  // What it returns (an errno, or the status of a completion) instead of its own; nullopt: its own.
  std::optional<std::uint64_t> judge(Call call, std::uint64_t qp, std::uint64_t now_ns);

  // That fault began by itself, and ended that queue pair.
  void fired(std::size_t fault, std::uint64_t qp, std::uint64_t now_ns);

  std::span<const Tally> tallies() const { return tallies_; }

 private:
  bool fires(std::size_t fault, std::uint64_t qp) const;

  const Plan plan_;
  const std::size_t remembered_;
  std::vector<Tally> tallies_;
};

}  // namespace weir::faults
