// Networks small enough to know by heart, with every number given; the oracles were measured on them.
#pragma once

#include <initializer_list>
#include <string>

#include "fabric/sim/simulation.hpp"

namespace weir::fabric::sim {

struct SmallSwitch {
  std::uint32_t cell_bytes = 1;
  std::uint64_t shared_bytes = 4'000'000;
  std::uint32_t headroom_bytes = 100'000;  // each port
  double alpha = 1.0 / 8;
  std::uint32_t xon_offset_bytes = 0;
  Wred wred;
  bool lossless = true;
};

struct Builder {
  Fabric fabric;
  double gbps = 100;
  Ticks delay = 500 * ticks_per_ns;

  explicit Builder(const SmallSwitch& small) {
    SwitchSettings settings;
    settings.cell_bytes = small.cell_bytes;
    settings.shared_bytes = small.shared_bytes;
    for (auto& priority : settings.priority) {
      priority.alpha = 8;
      priority.strict = true;
    }
    auto& data = settings.priority[3];
    data.lossless = small.lossless;
    data.strict = false;
    data.alpha = small.alpha;
    data.xon_offset_bytes = small.xon_offset_bytes;
    data.wred = small.wred;
    fabric.switches.push_back(settings);
    headroom = small.headroom_bytes;
  }

  std::uint32_t add_switch(const std::string& name) {
    fabric.nodes.push_back({name, false, 0});
    return static_cast<std::uint32_t>(fabric.nodes.size() - 1);
  }
  // Adds a host and its cable to `at`; returns its address.
  std::uint32_t add_host(std::uint32_t at, double speed = 0) {
    fabric.nodes.push_back({std::string("h").append(std::to_string(fabric.hosts.size())), true, none});
    const auto node = static_cast<std::uint32_t>(fabric.nodes.size() - 1);
    fabric.hosts.push_back(node);
    host_ports.push_back(connect(node, at, speed));
    return static_cast<std::uint32_t>(fabric.hosts.size() - 1);
  }
  // Adds a link; returns the port at `a`. The port at `b` is the next one.
  std::uint32_t connect(std::uint32_t a, std::uint32_t b, double speed = 0) {
    const auto first = static_cast<std::uint32_t>(fabric.ports.size());
    for (const bool second : {false, true}) {
      PortSettings port;
      port.node = second ? b : a;
      port.peer = first + (second ? 0 : 1);
      port.name = std::string("p").append(std::to_string(first + (second ? 1 : 0)));
      port.gbps = speed != 0 ? speed : gbps;
      port.delay = delay;
      port.headroom_bytes[3] = headroom;
      fabric.ports.push_back(port);
    }
    return first;
  }
  void begin_routes() {
    auto& routes = fabric.routes;
    routes.hosts = static_cast<std::uint32_t>(fabric.hosts.size());
    std::uint32_t rows = 0;
    for (const auto& node : fabric.nodes) routes.row.push_back(node.host ? none : rows++);
    routes.group.assign(std::size_t{rows} * routes.hosts, 0);
    routes.first.assign(1, 0);
    routes.count.assign(1, 0);
  }
  void route(std::uint32_t at, std::uint32_t host, std::initializer_list<std::uint32_t> ports) {
    auto& routes = fabric.routes;
    routes.group[std::size_t{routes.row[at]} * routes.hosts + host] =
        static_cast<std::uint32_t>(routes.first.size());
    routes.first.push_back(static_cast<std::uint32_t>(routes.ports.size()));
    routes.count.push_back(static_cast<std::uint32_t>(ports.size()));
    routes.ports.insert(routes.ports.end(), ports);
  }
  // The switch's port towards a host.
  std::uint32_t facing(std::uint32_t host) const { return host_ports[host] + 1; }

  std::uint32_t headroom = 0;
  std::vector<std::uint32_t> host_ports;
};

// One switch and `hosts` hosts.
inline Builder star(const SmallSwitch& small, unsigned hosts) {
  Builder builder(small);
  const auto at = builder.add_switch("s0");
  for (unsigned i = 0; i < hosts; ++i) builder.add_host(at);
  builder.begin_routes();
  for (unsigned i = 0; i < hosts; ++i) builder.route(at, i, {builder.facing(i)});
  return builder;
}

// Frames of 1048 bytes without gaps, as in the oracles.
inline Experiment bare_run() {
  Experiment run;
  run.transport.mtu_bytes = 1000;
  run.transport.header_bytes = 48;
  run.transport.gap_bytes = 0;
  run.transport.ack_bytes = 60;
  run.transport.ack_every = 1;
  run.transport.control = CongestionControl::off;
  run.deadlock_check = 0;
  return run;
}

}  // namespace weir::fabric::sim
