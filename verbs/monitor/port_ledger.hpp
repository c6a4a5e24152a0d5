// What the port counted since somebody first asked: the sums that outlive the processes that counted.
//
// A device's counters go on when a program ends; a process's are in memory that ends with it. So the first
// look at the port's counters makes a ledger, a file in the runtime directory, with an account for each
// process. Whoever sees a process's counters reports them: those who look, the process itself when it exits,
// and the neighbours of one that was killed. Counters only grow, so an account keeps the most that was ever
// reported, and it does not matter who reports, how often, or in which order. What a killed process did after
// the last report is lost if it had no neighbour.
//
// Where nobody looked there is no ledger, and nobody reports. It stays until the directory is removed.
#pragma once

#include <optional>
#include <string>

#include "link/file_lock.hpp"
#include "link/memory/mapping.hpp"
#include "verbs/monitor/statistics.hpp"

namespace weir::verbs {

class PortLedger {
 public:
  static constexpr const char* file_name = "lasting-port-counters";
  // Accounts that are kept apart. Further ones take the place of the oldest, whose sums stay in the total:
  // more than there can be processes at a time, so a report that comes late still finds its own.
  static constexpr std::size_t max_accounts = 2048;

  enum class Missing { make_it, leave_it };
  // Locked until it is destroyed. Nothing: there is none, or the directory cannot be written to.
  static std::optional<PortLedger> open(const std::string& directory, Missing);

  void report(std::uint64_t identity, CountersSeen seen);
  CountersSeen total() const;

 private:
  struct File;
  PortLedger(link::FileLock lock, link::Mapping mapping)
      : lock_(std::move(lock)), mapping_(std::move(mapping)) {}
  File& file() const;

  link::FileLock lock_;
  link::Mapping mapping_;
};

}  // namespace weir::verbs
