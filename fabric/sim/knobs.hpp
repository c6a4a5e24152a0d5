// The adjustable numbers of a scenario. Each has a name by which a scenario file sets it ([buffer] alpha),
// the command line overrides it (--set buffer.alpha=0.5), and a sweep varies it (--sweep
// buffer.alpha=0.25,0.5,1). The table knobs() defines all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fabric/sim/settings.hpp"
#include "fabric/topology/document.hpp"
#include "fabric/topology/quantity.hpp"

namespace weir::fabric::sim {

// In the units of the table: bytes, ns, bit/s, fractions of one. Absent: from the plan, or the default.
struct Knobs {
  std::uint64_t seed = 1;
  double duration_ns = 10e6;
  double sample_ns = 0;  // 0: 1/200 of the duration
  double deadlock_check_ns = 1e6;
  std::optional<double> alpha, headroom_bytes, shared_bytes, xon_offset_bytes, kmin_bytes, kmax_bytes, pmax;
  MarkAt mark_at = MarkAt::dequeue;
  double pause_quanta = 65535;
  double load_factor = 1;
  std::string congestion_control = "dcqcn";
  std::string preset = "hpcc-paper";
  double priority = 3;
  std::optional<double> g, additive_bps, hyper_bps, minimum_bps, alpha_ns, increase_ns, cnp_ns,
      increase_bytes, recovery_steps, decrease_ns, largest_decrease, initial_alpha, reference_bps;
  std::string clamp_target;  // "": as in the preset
  std::optional<double> window_rtts;
  std::string window_by_rate;
  Transport transport;
  double timeout_ns = fabric::timeout_ns(14);  // 67 ms, as perftest has it
};

enum class KnobKind : std::uint8_t { number, bytes, time, timeout, rate, fraction, word };

// "bytes", for a list of settings.
std::string_view kind_text(KnobKind kind);

struct Knob {
  std::string_view table;
  std::string_view key;
  KnobKind kind;
  Range range;
  std::string_view what;
  void (*set)(Knobs&, double);
  void (*set_word)(Knobs&, const std::string&) = nullptr;  // for a knob whose value is a word
  std::initializer_list<std::string_view> words = {};
};

std::span<const Knob> knobs();

// "buffer.alpha", or "alpha" if no other table has it.
const Knob* find_knob(std::string_view name);

// Sets the knob from text, as in a scenario file but without quotes. Returns what is wrong with it, or "".
std::string set_knob(Knobs& values, const Knob& knob, std::string_view text);

// Reads all tables of knobs that the file has.
void read_knobs(Knobs& values, Table& root);

}  // namespace weir::fabric::sim
