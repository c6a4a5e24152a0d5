// A scenario file: a network (its own keys, or `network = "file.toml"`), its hosts' traffic, faults, and the
// knobs. weir-sim(1) describes the keys; this reader defines them.
//
// load_scenario() reads and checks. prepare() converts a scenario and its knobs, which may have changed
// since, into the input of Simulation. Switch settings that the file does not give come from the network's
// plan, so that the simulation matches what `weir plan` would deploy.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/plan/plan_network.hpp"
#include "fabric/sim/knobs.hpp"
#include "fabric/sim/traffic/workload.hpp"
#include "fabric/topology/read_network.hpp"
#include "fabric/topology/routing.hpp"

namespace weir::fabric::sim {

struct LinkFailure {
  LinkId link;
  Ticks at = 0;
  Ticks back = 0;         // 0: it does not recover
  Ticks convergence = 0;  // until all switches know
};

struct StormHost {
  std::uint32_t host = 0;
  Ticks start = 0;
  std::optional<Ticks> end;              // absent: the end of the run
  std::optional<std::uint8_t> priority;  // absent: the transport's
};

struct Scenario {
  std::string name;
  std::unique_ptr<Network> network;  // on the heap, because the plan points to it
  Plan plan;
  Knobs knobs;
  std::vector<Workload> workloads;
  std::vector<LinkFailure> failures;
  std::vector<StormHost> storms;
  Watchdog watchdog;
};

struct Prepared {
  Fabric fabric;
  Experiment experiment;
};

inline constexpr double most_flows = 20e6;

// nullopt, with at least one complaint, if anything is wrong.
std::optional<Scenario> read_scenario(std::string_view text, std::string file, const FileOpener& open,
                                      Complaints& complaints);
// The same for a scenario that has more to run than its workloads, of which it then need not have any: `more`
// reads the tables that weir sim does not know.
using MoreTables = std::function<void(Table& root)>;
std::optional<Scenario> read_scenario(std::string_view text, std::string file, const FileOpener& open,
                                      Complaints& complaints, const MoreTables& more);
std::optional<Scenario> load_scenario(const std::string& path, Complaints& complaints);
std::optional<Scenario> load_scenario(const std::string& path, Complaints& complaints,
                                      const MoreTables& more);

// The switch whose buffer is smaller than the headroom that `knobs` demand; empty: none. If the shared pool
// is set as well, the user means a buffer of another size.
std::string headroom_beyond_buffer(const Scenario& scenario, const Knobs& knobs);

// Why the workloads with `knobs` are too much for one run; empty: they are not.
std::string beyond_a_run(const Scenario& scenario, const Knobs& knobs);

Prepared prepare(const Scenario& scenario, const Knobs& knobs);

// The tables of next hops for Simulation, without the `failed` links.
RouteTable route_table(const Network& network, const Fabric& fabric, std::span<const LinkId> failed);

}  // namespace weir::fabric::sim
