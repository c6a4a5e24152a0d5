// Decides which messages find no receive although one is posted: a receiver that is slow on purpose (`rnr`).
//
// Messages are counted for each queue pair, from 1; those that need no receive (READ, plain WRITE, atomics)
// count for nothing. Pure: time is passed in. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "faults/fault.hpp"

namespace weir::faults {

class ReceiveFaults {
 public:
  struct Firing {
    std::uint64_t at_ns = 0;
    std::uint64_t qp = 0;  // by order of creation
    std::uint64_t message = 0;
  };
  struct Tally {
    std::uint64_t met = 0, fired = 0;  // the same: what meets the conditions fires
    std::vector<Firing> firings;       // the first of them
  };
  static constexpr std::uint64_t for_ever = UINT64_MAX;

  explicit ReceiveFaults(Plan plan, std::size_t remembered = 10);

  bool any() const;  // whether the plan has such faults
  // The first message of that queue pair from `message` on that finds no receive now; nullopt: all find one.
  std::optional<std::uint64_t> next(std::uint64_t qp, std::uint64_t message, std::uint64_t now_ns) const;
  // That message found none, for the first time. When it finds one, or for_ever; not after now_ns: at once,
  // since the fault has ended meanwhile.
  std::uint64_t refused(std::uint64_t qp, std::uint64_t message, std::uint64_t now_ns);
  // When a fault begins or ends by time.
  std::vector<std::uint64_t> turning_points() const;

  std::span<const Tally> tallies() const { return tallies_; }

 private:
  bool is_in_force(std::size_t fault, std::uint64_t qp, std::uint64_t now_ns) const;

  const Plan plan_;
  const std::size_t remembered_;
  std::vector<Tally> tallies_;
};

}  // namespace weir::faults
