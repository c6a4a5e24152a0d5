// The dropped packets of this process, for a program that shows them in its own statistics.
#include "verbs/ibv/private_link.hpp"
#include "verbs/nic/drop_report.hpp"
#include "verbs/nic/nic_process.hpp"

using namespace weir::verbs;

int weir_own_drops(const char** names, std::uint64_t* counts, int room) {
  NicProcess* const nic = NicProcess::existing();
  if (nic == nullptr) return 0;
  const auto& counters = nic->adapter().segment().header().counters;
  const auto dropped = DropReport::counts_of(counters);
  int used = 0;
  const auto put = [&](const char* name, std::uint64_t count) {
    if (used >= room) return;
    names[used] = name;
    counts[used++] = count;
  };
  for (std::size_t i = 0; i < dropped.size(); ++i) put(drop_reasons[i].name, dropped[i]);
  put("kernel", counters.not_received.load(std::memory_order_relaxed));
  return used;
}
