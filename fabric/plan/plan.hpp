// The plan of a whole network: for each kind of switch in it the split of its buffer, alpha, XOFF and XON;
// for each kind of port headroom and ECN marks; and what is wrong or risky, in plain words.
//
// Switches that are alike (same model, same ports on the same cables) share a SwitchPlan, ports that are
// alike a PortPlan: a plan of three thousand ports is read in a screen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabric/plan/deadlock.hpp"
#include "fabric/plan/headroom.hpp"
#include "fabric/plan/marking.hpp"
#include "fabric/topology/network.hpp"

namespace weir::fabric {

// How queues that are not strict share a port (DWRR), as configured and as simulated.
inline constexpr unsigned lossless_weight = 15, lossy_weight = 14;

struct PortPlan {
  std::uint64_t speed_bps = 0;
  Cable cable;
  std::string peer;           // "hosts", or the model of the switches at the other end
  std::vector<PortId> ports;  // of all switches of the SwitchPlan
  std::size_t ports_per_switch = 0;
  SonicHeadroom headroom;
  FirstPrinciples in_principle;
  // What is planned: SONiC's figure, raised to that of first principles where it is larger, and to that of
  // the switch's other ports of the same profile.
  std::uint64_t xoff = 0;
  Marks marks;
  std::string profile;  // SONiC's name: pg_lossless_100000_40m_profile
  // Kept for each priority group whatever its use.
  std::uint64_t guaranteed() const { return headroom.xon + headroom.overhead; }
  std::uint64_t size() const { return guaranteed() + xoff; }
};

// One switch's buffer, in bytes. reserved + guaranteed + headroom + shared == buffer when it fits.
struct BufferSplit {
  std::uint64_t buffer = 0;
  std::uint64_t reserved = 0;      // not for lossless traffic: SwitchModel's, and what is no whole cell
  std::uint64_t guaranteed = 0;    // of all priority groups: their XON marks, and a frame with eight lanes
  std::uint64_t headroom = 0;      // set aside: the sum, or the shared pool
  std::uint64_t headroom_sum = 0;  // of all priority groups
  std::uint64_t shared = 0;        // whole cells
  bool fits = false;
};

struct SwitchPlan {
  std::vector<NodeId> switches;
  const SwitchModel* model = nullptr;
  std::vector<PortPlan> ports;
  std::size_t port_count = 0;  // of one switch
  BufferSplit split;
  int dynamic_th = 0;
  std::uint64_t xoff_limit_one = 0;  // of one congested priority group
  std::uint64_t xoff_limit = 0;      // of each of TrafficHints::congested_queues
  std::uint64_t xon_offset = 0;      // resume this far below the limit
  std::uint32_t watchdog_detection_ms = 0, watchdog_restoration_ms = 0, watchdog_poll_ms = 0;
};

enum class Severity { note, warning, fault };  // a fault: the network would lose packets or stop

struct Finding {
  Severity severity;
  std::string code;  // "headroom_does_not_fit": for scripts
  std::string text;
  Place place;  // of what to change, where it is one place
};

struct LinkLoad {
  PortId port;   // sends
  double share;  // of the link, when every host sends at its speed to all others alike
};

struct Plan {
  const Network* network = nullptr;
  std::vector<SwitchPlan> switches;
  std::vector<Finding> findings;  // faults first
  DeadlockReport deadlock;
  std::vector<LinkLoad> hot_links;  // loaded beyond their speed, the worst first
  double rtt_ns = 0;                // unloaded, of the longest path
  bool has(Severity severity) const;
};

std::string_view name_of(Severity severity);
std::string_view name_of(CableKind kind);

}  // namespace weir::fabric
