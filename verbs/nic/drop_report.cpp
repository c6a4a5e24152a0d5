#include "verbs/nic/drop_report.hpp"

#include <algorithm>
#include <numeric>

namespace weir::verbs {

DropReport::Counts DropReport::counts_of(const rnic::ProcessCounters& counters) {
  Counts counts;
  std::ranges::transform(counters.dropped, counts.begin(), &rnic::Counter::read);
  return counts;
}

std::optional<std::string> DropReport::look(const Counts& now, link::Clock::time_point at) {
  if (said_at_ && at - *said_at_ < interval) return std::nullopt;
  Counts grown;
  std::ranges::transform(now, said_, grown.begin(), std::minus{});
  const auto all = std::accumulate(grown.begin(), grown.end(), std::uint64_t{0});
  if (all < worth_saying) return std::nullopt;
  std::string reasons;
  for (std::size_t i = 0; i < grown.size(); ++i) {
    if (grown[i] == 0) continue;
    reasons += (reasons.empty() ? "" : ", ") + std::to_string(grown[i]) + " " + drop_reasons[i].text;
  }
  said_ = now;
  said_at_ = at;
  return std::to_string(all) + " packets that came to UDP port 4791 were dropped (" + reasons +
         "); strangers send them, or a peer has wrong addresses: let a firewall admit only the hosts that "
         "use "
         "RDMA to that port; weir stat shows the counts";
}

}  // namespace weir::verbs
