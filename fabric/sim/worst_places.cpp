// The network at its worst: the longest queues, the fullest buffers, and how long ports were stopped.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fabric/picture/network_map.hpp"
#include "fabric/picture/page.hpp"
#include "fabric/sim/over_time.hpp"

namespace weir::fabric::sim {
namespace {

constexpr double worth_red = 0.005;   // of the time, stopped
constexpr double worth_amber = 0.05;  // of the longest queue anywhere

struct Wait {
  std::uint64_t longest = 0;  // bytes in the queue of a port
  double stopped = 0;         // share of the time
};

Wait wait_of(const Simulation& simulation, std::uint32_t port) {
  Wait wait;
  for (unsigned priority = 0; priority < priorities; ++priority) {
    wait.longest = std::max<std::uint64_t>(wait.longest, simulation.queue(port, priority).bytes_most);
    wait.stopped =
        std::max(wait.stopped, to_us(simulation.paused_time(port, priority)) / to_us(simulation.now()));
  }
  return wait;
}

std::string shade(double part) {
  return fmt::format("h{}", std::clamp(static_cast<int>(std::ceil(part * 8)), 1, 8));
}

}  // namespace

std::string worst_places(const Simulation& simulation, const Network& network) {
  if (simulation.now() == 0) return {};
  const auto& fabric = simulation.fabric();
  std::vector<Wait> waits;
  std::uint64_t longest = 1;
  for (std::uint32_t p = 0; p < fabric.ports.size(); ++p) {
    waits.push_back(wait_of(simulation, p));
    if (!fabric.nodes[fabric.ports[p].node].host) longest = std::max(longest, waits.back().longest);
  }
  NetworkMap map{.network = network, .title = "Fullest buffers", .each_host = true};
  for (std::uint32_t p = 0; p < fabric.ports.size(); ++p) {
    const auto& wait = waits[p];
    const bool from_host = fabric.nodes[fabric.ports[p].node].host;
    const std::uint32_t far = fabric.ports[fabric.ports[p].peer].node;
    const double part = static_cast<double>(wait.longest) / static_cast<double>(longest);
    const auto tip = fmt::format("{} to {}: longest queue {}B, stopped {:.1f} % of the time",
                                 port_name(fabric, p), fabric.nodes[far].name,
                                 short_number(static_cast<double>(wait.longest)), 100 * wait.stopped);
    if (from_host) {
      if (wait.stopped > worth_red)
        map.nodes[{fabric.ports[p].node}] = {"held",
                                             fmt::format("stopped {:.1f} % of the time", 100 * wait.stopped)};
    } else if (fabric.nodes[far].host) {
      if (part > worth_amber) map.nodes.try_emplace({far}, MapMark{shade(part), tip});
    } else if (wait.stopped > worth_red) {
      map.links[{p}] = {"cyclic", tip, 1.5 + 3 * std::min(1.0, wait.stopped)};
    } else if (part > worth_amber) {
      map.links[{p}] = {"hot", tip, 1 + 2.5 * part};
    }
  }
  for (std::uint32_t n = 0; n < fabric.nodes.size(); ++n) {
    if (fabric.nodes[n].host) continue;
    const auto& pool = simulation.pool(n);
    if (pool.used_most == 0 || pool.size == 0) continue;
    const double part = static_cast<double>(pool.used_most) / static_cast<double>(pool.size);
    map.nodes[{n}] = {shade(part), fmt::format("at most {:.0f} % of the shared buffer in use", 100 * part)};
  }
  map.keys = {{"h6", "the fuller a buffer and the longer a queue to a host, the stronger", true},
              {"held", "host stopped by PFC", true},
              {"cyclic", "link stopped"},
              {"hot", "long queue"}};
  return svg(map);
}

}  // namespace weir::fabric::sim
