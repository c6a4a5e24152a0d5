// Headroom: the bytes that may still arrive at a priority group after it has crossed XOFF.
//
// There are two methods. sonic_headroom is the formula by which SONiC computes a profile (sonic-swss,
// cfgmgr/buffer_headroom_mellanox.lua, as in each release): the value that such a switch gets.
// first_principles adds up what happens over time, with a parameter for each term; it shows whether the
// formula's value suffices. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::fabric {

// How long the receiver of a PFC frame may take to stop, in pause quanta of 512 bit times
// (IEEE 802.3, 31B.3.7).
std::uint32_t pause_response_quanta(std::uint64_t speed_bps);
inline constexpr std::uint32_t quantum_bits = 512;
inline constexpr std::uint32_t preamble_and_gap_bytes = 20;  // on the wire, before and between frames
inline constexpr std::uint32_t pfc_frame_bytes = 64;

struct HeadroomTerm {
  std::string_view name;
  double bytes;  // on the wire
  double ns;     // the time for these at the port's speed
  double cells;  // buffer cells for them, with the worst packet sizes
};

// The differences between SONiC's releases.
struct SonicFormula {
  std::string_view release;  // the first release with it: "202405"
  std::uint64_t
      ieee_up_to_bps;          // up to this speed the pause response is that of IEEE 802.3; above this speed
                               // SwitchModel::peer_response_bytes is used, or that of IEEE 802.3 if absent
  bool whole_worst_factor;     // cells for each minimal packet rounded up: a packet takes whole cells
  bool tiles;                  // SwitchModel::tile_bytes_per_gbps is included
  double bits_to_bytes;        // for bytes on the cable: 8 x 1000, or 8 x 1024 by mistake, each / 1000
  double eight_lane_less;      // subtracted from the doubled pipeline of a port with eight lanes
  bool small_packets_by_byte;  // the share of small packets is per packet: converted to bytes
  bool compensated;            // private headroom exceeds that of small packets by at most 2 KiB
};
// Ordered by release. "tables" are the pg_profile_lookup.ini files that SONiC has for
// Spectrum to Spectrum-3.
std::span<const SonicFormula> sonic_formulas();
// The formula of a release such as "202311" or "tables"; null: no such release.
const SonicFormula* sonic_formula(std::string_view release);
// Every release that sonic_formula knows.
std::span<const std::string_view> sonic_releases();

struct SonicHeadroomInput {
  const SonicFormula* formula = &sonic_formulas().back();
  std::uint64_t speed_bps = 0;
  double cable_m = 0;  // one way
  double port_mtu_bytes = 9216;
  double lossless_mtu_bytes = 1024;
  double small_packet_percentage = 100;
  double cell_bytes = 1;
  double pipeline_bytes = 0;
  double mac_phy_bytes = 0;
  std::optional<double> peer_response_bytes;  // absent: pause_response_quanta
  double gearbox_ns = 0;
  double macsec_ns = 0;  // not in SONiC's formula; added like a gearbox
  double tile_bytes_per_gbps = 0;
  bool eight_lanes = false;
  bool shared_pool = false;  // the headroom is not private to the priority group
};

struct SonicHeadroom {
  std::vector<HeadroomTerm> terms;
  double cell_waste;  // bytes of buffer per byte of packets: the formula's cell occupancy
  std::uint64_t xoff, xon;
  std::uint64_t overhead;  // additional, in a private group of a port with eight lanes: one frame
  std::uint64_t size;      // of the profile with private headroom
};
SonicHeadroom sonic_headroom(const SonicHeadroomInput& in);

struct FirstPrinciplesInput {
  std::uint64_t speed_bps = 0;
  double pfc_generation_ns = 0;     // from crossing XOFF until the PFC frame is next to be sent
  double blocking_frame_bytes = 0;  // the frame that it waits for
  double pfc_frame_bytes = 0;       // the PFC frame
  double phy_ns = 0;                // PHY, gearbox and MACsec engine, both ends, both ways
  double cable_out_ns = 0;
  std::optional<double> peer_stop_ns;  // absent: pause_response_quanta
  double peer_frame_bytes = 0;         // the frame that the peer had started
  double cable_back_ns = 0;
  std::uint32_t smallest_packet_bytes = 64;
  std::uint32_t largest_packet_bytes = 9216;
  std::uint32_t cell_bytes = 1;
};

struct FirstPrinciples {
  std::vector<HeadroomTerm> terms;
  double ns;
  std::uint32_t worst_packet_bytes;  // the most wasteful packet size
  double cells_exact;
  std::uint64_t cells, bytes;
};
FirstPrinciples first_principles(const FirstPrinciplesInput& in);

// The packet size, between the two, that needs most cells for its time on the wire.
std::uint32_t worst_packet(std::uint32_t smallest, std::uint32_t largest, std::uint32_t cell);

// The headroom for no loss at all if every frame has the same size; `extra_bytes` is the PFC frame and the
// frame that it waits for. Counts whole frames, including the one that crossed XOFF.
std::uint64_t zero_loss_headroom(double frame_bytes, std::uint64_t speed_bps, double delay_ns,
                                 double extra_bytes);

}  // namespace weir::fabric
