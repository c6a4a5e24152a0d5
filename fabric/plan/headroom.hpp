// Headroom: the bytes that may still arrive at a priority group after it crossed XOFF.
//
// Two forms. sonic_headroom is the formula with which SONiC computes a profile (sonic-swss,
// cfgmgr/buffer_headroom_mellanox.lua, as each release has it): what a switch of that kind will be configured
// with. first_principles adds up
// what happens in time, each term a parameter; it says whether the first is enough. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace weir::fabric {

// How long a receiver of a PFC frame may take to stop, in pause quanta of 512 bit times (IEEE 802.3,
// 31B.3.7).
std::uint32_t pause_response_quanta(std::uint64_t speed_bps);
inline constexpr std::uint32_t quantum_bits = 512;
inline constexpr std::uint32_t preamble_and_gap_bytes = 20;  // on the wire, before and between frames
inline constexpr std::uint32_t pfc_frame_bytes = 64;

struct HeadroomTerm {
  std::string_view name;
  double bytes;  // on the wire
  double ns;     // what they take at the port's speed
  double cells;  // that they occupy in the buffer, in the worst case of packet sizes
};

// What the releases of SONiC do differently.
struct SonicFormula {
  std::string_view release;  // the first that has it: "202405"
  std::uint64_t
      ieee_up_to_bps;          // the pause response is that of IEEE 802.3; above, and where a model has none,
                               // the one figure of the ASIC's table (SwitchModel::peer_response_bytes)
  bool whole_worst_factor;     // cells for each minimal packet rounded up: a packet takes whole cells
  bool tiles;                  // SwitchModel::tile_bytes_per_gbps counts
  double bits_to_bytes;        // of the bytes on the cable: 8 x 1000, or 8 x 1024 by mistake, each / 1000
  double eight_lane_less;      // off the doubled pipeline of a port with eight lanes
  bool small_packets_by_byte;  // the share of small packets is one of packets: turned into one of bytes
  bool compensated;            // private headroom stays within 2 KiB of that of small packets only
};
// In order of their releases. "tables" are the pg_profile_lookup.ini that come with SONiC for Spectrum to
// Spectrum-3.
std::span<const SonicFormula> sonic_formulas();
// The one in force in a release such as "202311" or "tables"; null where there is no such release.
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
  double macsec_ns = 0;  // not in SONiC's formula; counted as it counts a gearbox
  double tile_bytes_per_gbps = 0;
  bool eight_lanes = false;
  bool shared_pool = false;  // the headroom is not the priority group's own
};

struct SonicHeadroom {
  std::vector<HeadroomTerm> terms;
  double cell_waste;  // bytes of buffer for a byte of packets: the formula's cell occupancy
  std::uint64_t xoff, xon;
  std::uint64_t overhead;  // beside them in a private group of a port with eight lanes: a frame
  std::uint64_t size;      // of the profile where headroom is private
};
SonicHeadroom sonic_headroom(const SonicHeadroomInput& in);

struct FirstPrinciplesInput {
  std::uint64_t speed_bps = 0;
  double pfc_generation_ns = 0;     // from crossing XOFF until the PFC frame is next to be sent
  double blocking_frame_bytes = 0;  // the frame being sent that it waits for
  double pfc_frame_bytes = 0;       // itself
  double phy_ns = 0;                // PHY, gearbox and MACsec engine, of both ends, both ways
  double cable_out_ns = 0;
  std::optional<double> peer_stop_ns;  // absent: pause_response_quanta
  double peer_frame_bytes = 0;         // the frame that the peer had begun
  double cable_back_ns = 0;
  std::uint32_t smallest_packet_bytes = 64;
  std::uint32_t largest_packet_bytes = 9216;
  std::uint32_t cell_bytes = 1;
};

struct FirstPrinciples {
  std::vector<HeadroomTerm> terms;
  double ns;
  std::uint32_t worst_packet_bytes;  // the packet size that wastes most
  double cells_exact;
  std::uint64_t cells, bytes;
};
FirstPrinciples first_principles(const FirstPrinciplesInput& in);

// The size of packets, between the two, that occupies most cells for its time on the wire.
std::uint32_t worst_packet(std::uint32_t smallest, std::uint32_t largest, std::uint32_t cell);

// What a link needs for no loss at all when every frame has the same size, `extra_bytes` being the PFC frame
// and the frame it waits for: whole frames, the one that crossed XOFF among them.
std::uint64_t zero_loss_headroom(double frame_bytes, std::uint64_t speed_bps, double delay_ns,
                                 double extra_bytes);

}  // namespace weir::fabric
