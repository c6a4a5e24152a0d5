// Headroom: the bytes that may still arrive at a priority group after it crossed XOFF.
//
// Two forms. sonic_headroom is the formula with which SONiC computes a profile (sonic-swss,
// buffer_headroom_mellanox.lua): what a switch of that kind will be configured with. first_principles adds up
// what happens in time, each term a parameter; it says whether the first is enough. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
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

struct SonicHeadroomInput {
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
};

struct SonicHeadroom {
  std::vector<HeadroomTerm> terms;
  double cell_waste;  // bytes of buffer for a byte of packets: the formula's cell occupancy
  std::uint64_t xoff, xon, size;
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
