// The plan of a whole network. For each kind of switch: the split of its buffer, alpha, XOFF and XON. For
// each kind of port: headroom and ECN marks. And what is wrong or risky, in plain words.
//
// Switches that are alike (same model, same ports on the same cables) share a SwitchPlan; equal ports share a
// PortPlan. So a plan of three thousand ports fits on a screen.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/plan/deadlock.hpp"
#include "fabric/plan/headroom.hpp"
#include "fabric/plan/marking.hpp"
#include "fabric/topology/network.hpp"

namespace weir::fabric {

// The weights by which queues that are not strict share a port (DWRR), configured and simulated.
inline constexpr unsigned lossless_weight = 15, lossy_weight = 14;

struct PortPlan {
  std::uint64_t speed_bps = 0;
  Cable cable;
  std::string peer;           // "hosts", or the model of the switches at the far end
  std::vector<PortId> ports;  // on all switches of the SwitchPlan
  std::size_t ports_per_switch = 0;
  SonicHeadroom headroom;                       // by SONiC's formula
  std::optional<std::uint64_t> published_xoff;  // of SONiC's table for the switch
  std::uint64_t sonic_xoff = 0;                 // what SONiC would take: one of both
  FirstPrinciples in_principle;
  // The planned value: SONiC's figure, raised to those of its table and of first principles if they are
  // larger, and to the largest of the switch's ports with the same profile.
  std::uint64_t xoff = 0;
  Marks marks;
  std::string profile;  // in SONiC: pg_lossless_100000_40m_profile
  // Reserved for each priority group, used or not.
  std::uint64_t guaranteed() const { return headroom.xon + headroom.overhead; }
  std::uint64_t size() const { return guaranteed() + xoff; }
};

// One switch's buffer, in bytes. If it fits, reserved + guaranteed + headroom + shared == buffer.
struct BufferSplit {
  std::uint64_t buffer = 0;
  std::uint64_t reserved = 0;      // not for lossless traffic: from SwitchModel, and incomplete cells
  std::uint64_t guaranteed = 0;    // of all priority groups: XON marks, and a frame for eight lanes
  std::uint64_t headroom = 0;      // set aside: the sum or the shared pool
  std::uint64_t headroom_sum = 0;  // of all priority groups
  std::uint64_t shared = 0;        // whole cells
  bool fits = false;
};

struct SwitchPlan {
  std::vector<NodeId> switches;
  const SwitchModel* model = nullptr;
  std::vector<PortPlan> ports;
  std::size_t port_count = 0;  // per switch
  BufferSplit split;
  int dynamic_th = 0;
  std::uint64_t xoff_limit_one = 0;  // for one congested priority group
  std::uint64_t xoff_limit = 0;      // for each of TrafficHints::congested_queues
  std::uint64_t xon_offset = 0;      // how far below the limit it resumes
  std::uint32_t watchdog_detection_ms = 0, watchdog_restoration_ms = 0, watchdog_poll_ms = 0;
};

enum class Severity { note, warning, fault };  // fault: the network would lose packets or stop

struct Finding {
  Severity severity;
  std::string code;  // "headroom_does_not_fit", for scripts
  std::string text;
  Place place;  // where to make a change, if that is one place
};

struct LinkLoad {
  PortId port;   // the sending port
  double share;  // of the link's speed, if every host sends at its speed to all others equally
};

struct Plan {
  const Network* network = nullptr;
  std::vector<SwitchPlan> switches;
  std::vector<Finding> findings;  // faults first
  DeadlockReport deadlock;
  std::vector<LinkLoad> hot_links;  // overloaded links, the worst first
  double rtt_ns = 0;                // of the longest path, unloaded
  bool has(Severity severity) const;
};

std::string_view name_of(Severity severity);
std::string_view name_of(CableKind kind);

}  // namespace weir::fabric
