// What a planner or simulator must know of a kind of switch: its buffer and how long it takes to react.
//
// Models are data: fabric/topology/models/*.toml is built in, and a network file adds its own with
// [[switch_model]].
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/topology/document.hpp"
#include "fabric/topology/port_range.hpp"

namespace weir::fabric {

enum class HeadroomPool {
  private_,  // each priority group owns its headroom
  shared,    // all draw from one pool, smaller than their sum
};

struct SwitchModel {
  std::string name;
  std::string source;  // where the numbers come from
  Place place;

  std::optional<std::uint64_t> capacity_bps;  // of all ports together, one way; absent: any
  std::uint64_t buffer_bytes = 0;             // the whole packet buffer
  std::uint64_t reserved_bytes = 0;           // of it, not ours: the management pool
  std::uint64_t reserved_per_port_bytes = 0;  // and for each linked port: lossy minimums, mirroring
  std::uint32_t cell_bytes = 1;               // a packet occupies whole cells
  HeadroomPool headroom_pool = HeadroomPool::private_;
  double over_subscription = 1;  // of a shared pool: sum of headrooms / pool

  // Delays of the first-principles headroom, in ns: from crossing XOFF to a PFC frame at the head of the
  // port's queue; and PHY, gearbox and MACsec engine, each passed once a direction.
  double pfc_generation_ns = 0;
  double phy_ns = 0;
  double gearbox_ns = 0;
  double macsec_ns = 0;
  double forwarding_ns = 1000;  // from the last bit in to the first bit out of an idle switch

  // Parameters of SONiC's formula (fabric/plan/headroom.hpp), in bytes.
  double pipeline_bytes = 0;  // what the pipeline holds: the XON mark
  double mac_phy_bytes = 0;
  // SONiC's releases before 202111 know one figure; later ones, and all where it is absent, take the pause
  // response of IEEE 802.3 for the speed.
  std::optional<double> peer_response_bytes;
  double tile_bytes_per_gbps = 0;
  // The largest queue a lossless class may build at egress; absent: the whole buffer.
  std::optional<std::uint64_t> egress_pool_bytes;

  std::vector<PortRange> ports;  // empty: not known
  // SONiC's port_config.ini or platform.json to take them from, beside the file of the model.
  std::string port_config;
};

// The ports of SONiC's port_config.ini or platform.json; nothing, and a complaint at `place`, where it has
// none. A port_config.ini without speeds gives 25 Gb/s a lane, 50 to the lanes of a port of eight; a
// platform.json knows how each port can be split.
std::vector<PortRange> read_port_config(std::string_view text, const Place& place, Complaints& complaints);

// One [[switch_model]]. Complains of what is missing or out of range.
SwitchModel read_switch_model(Table& table);

// The models that come with Weir, in order of their names.
const std::vector<SwitchModel>& built_in_models();

}  // namespace weir::fabric
