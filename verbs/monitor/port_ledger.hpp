// The port's counters since somebody first read them: sums that outlive the processes that counted.
//
// A device's counters continue when a program ends, but a process's counters lie in memory that ends with it.
// So the first read of the port's counters creates a ledger, a file in the runtime directory, with an account
// for each process. A process's counters are reported by everyone who reads them, by the process itself when
// it exits, and by the neighbours of a killed process. Counters only grow, so an account keeps the maximum
// ever reported: it does not matter who reports, how often or in which order. If a killed process had no
// neighbour, what it counted after its last report is lost.
//
// If nobody ever read them, there is no ledger and nobody reports. It lasts as long as the directory.
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
  // The number of separate accounts. A further one replaces the oldest, whose sums stay in the total. More
  // processes than this cannot run at a time, so a late report still finds its account.
  static constexpr std::size_t max_accounts = 2048;

  enum class Missing { make_it, leave_it };
  // Holds a lock until destroyed. nullopt: there is no ledger, or the directory cannot be written.
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
