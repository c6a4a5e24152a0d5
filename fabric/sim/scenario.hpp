// A scenario file: a network (its own keys, or `network = "file.toml"`), what its hosts send, what breaks,
// and the knobs. weir-sim(1) describes the keys; the reader is the one definition of them.
//
// load() reads and checks; prepare() turns a scenario and its knobs, perhaps turned since, into what
// Simulation takes. Settings of switches that the file does not give come from the plan of the network, so
// that what is simulated is what `weir plan` would deploy.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/plan/plan_network.hpp"
#include "fabric/sim/knobs.hpp"
#include "fabric/sim/workload.hpp"
#include "fabric/topology/read_network.hpp"
#include "fabric/topology/routing.hpp"

namespace weir::fabric::sim {

struct LinkFailure {
  LinkId link;
  Ticks at = 0;
  Ticks back = 0;         // 0: never
  Ticks convergence = 0;  // until all switches know
};

struct StormHost {
  std::uint32_t host = 0;
  Ticks start = 0;
  std::optional<Ticks> end;              // absent: that of the run
  std::optional<std::uint8_t> priority;  // absent: that of the transport
};

struct Scenario {
  std::string name;
  std::unique_ptr<Network> network;  // where the plan looks for it
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

// Nothing, and at least one complaint, where anything is wrong.
std::optional<Scenario> read_scenario(std::string_view text, std::string file, const FileOpener& open,
                                      Complaints& complaints);
std::optional<Scenario> load_scenario(const std::string& path, Complaints& complaints);

// Which switch's buffer is smaller than the headroom that `knobs` ask for; empty where none is. Whoever sets
// the shared pool as well means a buffer of another size.
std::string headroom_beyond_buffer(const Scenario& scenario, const Knobs& knobs);

// Why the workloads are more than a run holds, as `knobs` have them; empty where they are not.
std::string beyond_a_run(const Scenario& scenario, const Knobs& knobs);

Prepared prepare(const Scenario& scenario, const Knobs& knobs);

// The tables of next hops that Simulation uses, with `failed` links left out.
RouteTable route_table(const Network& network, const Fabric& fabric, std::span<const LinkId> failed);

}  // namespace weir::fabric::sim
