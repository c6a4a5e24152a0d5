// What a planner or simulator must know about a kind of switch: its buffer and its reaction times.
//
// Models are data: fabric/topology/models/*.toml are built in, and a network file adds its
// own with [[switch_model]].
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
  shared,    // all share one pool, smaller than their sum
};

// A row of SONiC's pg_profile_lookup.ini: the headroom of a lossless priority group.
struct HeadroomRow {
  std::uint64_t speed_bps = 0;
  double cable_m = 0;
  std::uint64_t xoff_bytes = 0;
};

// The pools of SONiC's template for a switch (buffers_defaults_*.j2).
enum class PoolLayout {
  three,  // ingress_lossless, egress_lossless, egress_lossy (Spectrum)
  two,  // ingress_lossless, egress_lossless: what may be lost shares both, or has a pool at egress (Tomahawk,
        // Trident)
  one,  // ingress_lossless, of type both: a chip that queues at ingress (Jericho)
};

struct SonicPools {
  PoolLayout layout = PoolLayout::three;
  std::optional<std::uint64_t> xoff_bytes;          // the headroom that all ports share; absent: planned
  bool egress_is_static = false;                    // the mode of egress_lossless_pool
  std::optional<std::uint64_t> lossless_static_th;  // the limit of a lossless egress queue; absent: dynamic
  int lossless_dynamic_th = 7;
  std::optional<std::uint64_t> lossy_pool_bytes;  // egress_lossy_pool, of PoolLayout::two
  std::uint64_t lossy_bytes = 0;                  // reserved for a lossy egress queue
  int lossy_dynamic_th = 3;
};

struct SwitchModel {
  std::string name;
  std::string source;  // the source of the numbers
  Place place;

  std::optional<std::uint64_t> capacity_bps;  // of all ports together, one way; absent: unlimited
  std::uint64_t buffer_bytes = 0;             // the whole packet buffer
  std::uint64_t reserved_bytes = 0;           // the part that is not ours: the management pool
  std::uint64_t reserved_per_port_bytes = 0;  // likewise for each linked port: lossy minimums, mirroring
  std::uint32_t cell_bytes = 1;               // a packet occupies whole cells
  HeadroomPool headroom_pool = HeadroomPool::private_;
  double over_subscription = 1;  // of a shared pool: sum of headrooms / pool
  // SONiC's size of the ingress pool includes the shared headroom (Broadcom), or it does not (Spectrum).
  bool pool_includes_headroom = false;
  SonicPools pools;

  // Delays of the first-principles headroom, in ns: from crossing XOFF to a PFC frame at the head of the
  // port's queue; then PHY, gearbox and MACsec engine, each passed once per direction.
  double pfc_generation_ns = 0;
  double phy_ns = 0;
  double gearbox_ns = 0;
  double macsec_ns = 0;
  double forwarding_ns = 1000;  // from the last bit in to the first bit out, in an idle switch

  // Parameters of SONiC's formula (fabric/plan/headroom.hpp), in bytes.
  double pipeline_bytes = 0;  // the pipeline's content: the XON mark
  double mac_phy_bytes = 0;
  // SONiC's releases before 202111 use this one figure. Later releases, and all if it is absent, use the
  // pause response of IEEE 802.3 for the speed.
  std::optional<double> peer_response_bytes;
  double tile_bytes_per_gbps = 0;
  // SONiC's table for the switch, by speed and then by cable; empty: none is known.
  std::vector<HeadroomRow> headroom_table;
  // SONiC computes no headroom for this chip (Broadcom), it looks it up in that table.
  bool headroom_looked_up = false;
  // The largest queue that a lossless class may build at egress; absent: the whole buffer.
  std::optional<std::uint64_t> egress_pool_bytes;

  std::vector<PortRange> ports;  // empty: unknown
  // Take the ports from this port_config.ini or platform.json of SONiC, in the folder of the model's file.
  std::string port_config;
};

// The ports in SONiC's port_config.ini or platform.json; empty, with a complaint at `place`: there are none.
// A port_config.ini without speeds means 25 Gb/s per lane, or 50 on ports of eight lanes; a platform.json
// knows how each port can be split.
std::vector<PortRange> read_port_config(std::string_view text, const Place& place, Complaints& complaints);

// Reads one [[switch_model]]. Complains of missing values and of those out of range.
SwitchModel read_switch_model(Table& table);

// The models that come with Weir, sorted by name.
const std::vector<SwitchModel>& built_in_models();

}  // namespace weir::fabric
