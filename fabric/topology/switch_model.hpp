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
  std::uint64_t reserved_bytes = 0;           // of it, not ours: CPU port, lossy minimums, mirroring
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
  std::optional<double> peer_response_bytes;  // absent: the pause response of IEEE 802.3 for the speed
  double tile_bytes_per_gbps = 0;
  // The largest queue a lossless class may build at egress; absent: the whole buffer.
  std::optional<std::uint64_t> egress_pool_bytes;
};

// One [[switch_model]]. Complains of what is missing or out of range.
SwitchModel read_switch_model(Table& table);

// The models that come with Weir, in order of their names.
const std::vector<SwitchModel>& built_in_models();

}  // namespace weir::fabric
