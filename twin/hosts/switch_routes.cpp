#include "twin/hosts/switch_routes.hpp"

#include <limits>

namespace weir::hosts {
namespace {

struct Neighbour {
  std::size_t node, cable;
};

constexpr std::size_t unreached = std::numeric_limits<std::size_t>::max();

// How many cables each switch is away from this one.
std::vector<std::size_t> distances_from(std::size_t first,
                                        const std::vector<std::vector<Neighbour>>& switches) {
  std::vector<std::size_t> distance(switches.size(), unreached), queue{first};
  distance[first] = 0;
  for (std::size_t next = 0; next < queue.size(); ++next)
    for (const Neighbour& neighbour : switches[queue[next]])
      if (distance[neighbour.node] == unreached) {
        distance[neighbour.node] = distance[queue[next]] + 1;
        queue.push_back(neighbour.node);
      }
  return distance;
}

}  // namespace

SwitchRoutes shortest_routes(const NetworkPlan& plan, const std::vector<bool>& plugged) {
  const std::size_t hosts = plan.hosts.size(), count = plan.switches.size();
  std::vector<std::vector<Neighbour>> switches(count);
  for (std::size_t cable = hosts; cable < plan.cables.size(); ++cable) {
    if (!plugged[cable]) continue;
    const std::size_t a = plan.cables[cable].a - hosts, b = plan.cables[cable].b - hosts;
    switches[a].push_back({b, cable});
    switches[b].push_back({a, cable});
  }
  SwitchRoutes routes(count, std::vector<std::vector<std::size_t>>(hosts));
  // Hosts of one switch are reached the same way.
  for (std::size_t last = 0; last < count; ++last) {
    const auto distance = distances_from(last, switches);
    for (std::size_t host = 0; host < hosts; ++host) {
      if (plan.cables[host].b - hosts != last || !plugged[host]) continue;
      routes[last][host] = {host};
      for (std::size_t at = 0; at < count; ++at)
        for (const Neighbour& neighbour : switches[at])
          if (distance[at] != unreached && distance[neighbour.node] + 1 == distance[at])
            routes[at][host].push_back(neighbour.cable);
    }
  }
  return routes;
}

}  // namespace weir::hosts
