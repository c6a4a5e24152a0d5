#include "fabric/plan/headroom.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::fabric {
namespace {

struct PauseResponse {
  std::uint64_t up_to_bps;
  std::uint32_t quanta;
};
constexpr std::array pause_responses = {
    PauseResponse{10'000'000'000, 67},   PauseResponse{25'000'000'000, 80},
    PauseResponse{40'000'000'000, 118},  PauseResponse{50'000'000'000, 147},
    PauseResponse{100'000'000'000, 394}, PauseResponse{200'000'000'000, 453},
    PauseResponse{400'000'000'000, 905}, PauseResponse{800'000'000'000, 905},
};

constexpr double speed_in_cable = 1.98e8;  // m/s, as in the formula
constexpr double minimal_packet_bytes = 64;
constexpr double compensation_bytes = 2 * 1024;
constexpr double bits = 8;
constexpr double ns_per_s = 1e9;

double ceil_to_kib(double bytes) { return std::ceil(bytes / 1024) * 1024; }

}  // namespace

std::uint32_t pause_response_quanta(std::uint64_t speed_bps) {
  for (const auto& row : pause_responses)
    if (speed_bps <= row.up_to_bps) return row.quanta;
  return pause_responses.back().quanta;
}

std::span<const SonicFormula> sonic_formulas() {
  constexpr double kilo = 8, kibi = 8.192;
  constexpr std::uint64_t gbps = 1'000'000'000;
  static constexpr SonicFormula formulas[] = {
      {"tables", 0, false, false, kilo, 1024, false, false},
      {"202012", 0, false, false, kibi, 1024, false, false},
      {"202111", 400 * gbps, false, false, kibi, 1024, false, false},
      {"202211", 800 * gbps, false, false, kibi, 1024, false, false},
      {"202405", 800 * gbps, true, true, kilo, 0, true, false},
      {"202605", 800 * gbps, true, true, kilo, 0, true, true},
  };
  return formulas;
}

std::span<const std::string_view> sonic_releases() {
  static constexpr std::string_view releases[] = {"tables", "202012", "202106", "202111", "202205",
                                                  "202211", "202305", "202311", "202405", "202411",
                                                  "202505", "202511", "202605"};
  return releases;
}

const SonicFormula* sonic_formula(std::string_view release) {
  if (std::ranges::find(sonic_releases(), release) == sonic_releases().end()) return nullptr;
  const auto formulas = sonic_formulas();
  if (release == formulas.front().release) return &formulas.front();
  const SonicFormula* found = nullptr;
  for (const auto& formula : formulas.subspan(1))
    if (formula.release <= release) found = &formula;
  return found;
}

SonicHeadroom sonic_headroom(const SonicHeadroomInput& in) {
  const auto& formula = *in.formula;
  const auto speed = static_cast<double>(in.speed_bps);
  double waste = in.cell_bytes > 2 * minimal_packet_bytes ? in.cell_bytes / minimal_packet_bytes
                                                          : 2 * in.cell_bytes / (1 + in.cell_bytes);
  if (formula.whole_worst_factor) waste = std::ceil(waste);
  const double small = in.small_packet_percentage;
  const double small_by_byte = 100 * minimal_packet_bytes /
                               ((small * minimal_packet_bytes + (100 - small) * in.lossless_mtu_bytes) / 100);
  const double share = formula.small_packets_by_byte ? small_by_byte : small;
  const double occupancy = (100 - share + share * waste) / 100;

  SonicHeadroom out;
  out.cell_waste = occupancy;
  double propagated = 0;
  const auto term = [&](std::string_view name, double bytes, double factor) {
    out.terms.push_back({name, bytes, bytes * bits / speed * ns_per_s, bytes * factor / in.cell_bytes});
    return bytes;
  };
  const double last = term("frame the peer had begun", in.lossless_mtu_bytes, 1);
  const auto add = [&](std::string_view name, double bytes) { propagated += term(name, bytes, occupancy); };
  const double quanta = pause_response_quanta(in.speed_bps) * double{quantum_bits} / bits;
  add("frame blocking the PFC frame", in.port_mtu_bytes);
  add("cable, out and back", 2 * in.cable_m * speed / speed_in_cable / formula.bits_to_bytes);
  add("gearbox, both ends", 2 * in.gearbox_ns * speed / bits / ns_per_s);
  add("MACsec, both ends", 2 * in.macsec_ns * speed / bits / ns_per_s);
  add("MAC and PHY", in.mac_phy_bytes);
  add("peer response",
      in.speed_bps <= formula.ieee_up_to_bps ? quanta : in.peer_response_bytes.value_or(quanta));
  if (formula.tiles) add("tiles of the ASIC", speed / 1e9 * in.tile_bytes_per_gbps);
  double xoff = ceil_to_kib(last + propagated * occupancy);
  if (formula.compensated && !in.shared_pool && small != 100 &&
      xoff + compensation_bytes < ceil_to_kib(last + propagated * waste))
    xoff += compensation_bytes;
  const double xon = in.eight_lanes ? 2 * in.pipeline_bytes - formula.eight_lane_less : in.pipeline_bytes;
  out.xoff = static_cast<std::uint64_t>(xoff);
  out.xon = static_cast<std::uint64_t>(ceil_to_kib(std::max(xon, 0.0)));
  out.overhead =
      in.eight_lanes && !in.shared_pool ? static_cast<std::uint64_t>(ceil_to_kib(in.port_mtu_bytes)) : 0;
  out.size = out.xoff + out.xon + out.overhead;
  return out;
}

std::uint32_t worst_packet(std::uint32_t smallest, std::uint32_t largest, std::uint32_t cell) {
  const auto cells_per_byte = [cell](std::uint32_t packet) {
    return std::ceil(double(packet) / cell) / (packet + preamble_and_gap_bytes);
  };
  // The worst is the smallest packet, or one that needs a single byte of another cell. Of the latter, the
  // next one wastes most; but if a cell is smaller than the overhead of a packet, the last one does.
  const auto next = (smallest + cell - 1) / cell * cell + 1, last = (largest - 1) / cell * cell + 1;
  auto worst = smallest;
  for (const auto packet : {next, last})
    if (packet >= smallest && packet <= largest && cells_per_byte(packet) > cells_per_byte(worst))
      worst = packet;
  return worst;
}

FirstPrinciples first_principles(const FirstPrinciplesInput& in) {
  const double ns_per_byte = bits * ns_per_s / static_cast<double>(in.speed_bps);
  FirstPrinciples out{};
  out.worst_packet_bytes = worst_packet(in.smallest_packet_bytes, in.largest_packet_bytes, in.cell_bytes);
  const double packet_ns = (out.worst_packet_bytes + preamble_and_gap_bytes) * ns_per_byte;
  const double cells_per_ns = std::ceil(double(out.worst_packet_bytes) / in.cell_bytes) / packet_ns;
  const auto add = [&](std::string_view name, double ns) {
    out.terms.push_back({name, ns / ns_per_byte, ns, ns * cells_per_ns});
    out.ns += ns;
  };
  const auto frame = [&](double bytes) {
    return bytes > 0 ? (bytes + preamble_and_gap_bytes) * ns_per_byte : 0;
  };
  add("PFC generation", in.pfc_generation_ns);
  add("frame blocking the PFC frame", frame(in.blocking_frame_bytes));
  add("PFC frame", frame(in.pfc_frame_bytes));
  add("PHY, gearbox, MACsec", in.phy_ns);
  add("cable, PFC frame out", in.cable_out_ns);
  add("peer stops (802.3 quanta)",
      in.peer_stop_ns.value_or(pause_response_quanta(in.speed_bps) * quantum_bits / bits * ns_per_byte));
  add("frame the peer had begun", frame(in.peer_frame_bytes));
  add("cable, last bytes back", in.cable_back_ns);
  out.cells_exact = out.ns * cells_per_ns;
  out.cells = static_cast<std::uint64_t>(std::ceil(out.cells_exact));
  out.bytes = out.cells * in.cell_bytes;
  return out;
}

std::uint64_t zero_loss_headroom(double frame_bytes, std::uint64_t speed_bps, double delay_ns,
                                 double extra_bytes) {
  const double in_flight = 2 * delay_ns * static_cast<double>(speed_bps) / bits / ns_per_s;
  return static_cast<std::uint64_t>(frame_bytes *
                                    (1 + std::floor((in_flight + frame_bytes + extra_bytes) / frame_bytes)));
}

}  // namespace weir::fabric
