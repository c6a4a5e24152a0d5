// The port's counters: sums over all processes, including those that have ended (port_ledger.hpp).
#include <cstdlib>
#include <vector>

#include "verbs/monitor/counters_seen.hpp"
#include "verbs/monitor/monitor.hpp"
#include "verbs/monitor/port_ledger.hpp"

using namespace weir::verbs;

extern "C" int weir_monitor_port(std::uint64_t bytes, CountersSeen* sums) {
  if (bytes != sizeof *sums) return -1;
  const auto monitor =
      Monitor::open(weir::link::SameHostLink::default_directory(::secure_getenv("WEIR_RUNTIME_DIR")));
  if (!monitor) return -1;
  struct Living {
    std::uint64_t identity;
    CountersSeen seen;
  };
  std::vector<Living> living;
  const auto visit = [](void* into, const ProcessSeen* seen) {
    static_cast<std::vector<Living>*>(into)->push_back({seen->identity, seen->sums});
  };
  (void)(*monitor)->look(visit, &living);  // a process that does not answer reports itself earlier or later
  if (auto ledger = PortLedger::open((*monitor)->directory(), PortLedger::Missing::make_it)) {
    for (const Living& one : living) ledger->report(one.identity, one.seen);
    *sums = ledger->total();
    return 0;
  }
  *sums = {};
  for (const Living& one : living) add(*sums, one.seen);
  return 0;
}
