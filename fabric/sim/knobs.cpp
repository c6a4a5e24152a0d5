#include "fabric/sim/knobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace weir::fabric::sim {
namespace {

constexpr Range any_bytes{0, 4e9}, any_time{0, longest_run_ns}, some_time{10, longest_run_ns},
    rates{1e6, 1e13}, fractions{0, 1}, some_part{0.01, 1};
constexpr auto b = KnobKind::bytes;
constexpr auto t = KnobKind::time;

// At namespace scope, because the words of a list live only as long as the list.
const std::initializer_list<std::string_view> controls = {"dcqcn", "dctcp", "hpcc", "swift", "none"};
const std::initializer_list<std::string_view> presets = {"paper", "ns3",        "connectx",
                                                         "hpcc",  "hpcc-paper", "hpcc-window"};
const std::initializer_list<std::string_view> mark_places = {"dequeue", "enqueue"};
const std::initializer_list<std::string_view> yes_no = {"yes", "no"};

template <class T>
T whole(double value) {
  return static_cast<T>(std::llround(value));
}

using K = Knobs&;
using D = double;
const std::vector<Knob>& table() {
  static const std::vector<Knob> all = {
      {"simulation",
       "seed",
       KnobKind::number,
       {0, 9e15},
       "of all random numbers",
       [](K k, D v) { k.seed = whole<std::uint64_t>(v); }},
      {"simulation",
       "duration",
       t,
       {1000, longest_run_ns},
       "simulated time after which the run ends, finished or not",
       [](K k, D v) { k.duration_ns = v; }},
      {"simulation", "sample", t, some_time, "time between two samples of the series",
       [](K k, D v) { k.sample_ns = v; }},
      {"simulation", "deadlock_check", t, any_time, "time between two checks for a deadlock; 0: none",
       [](K k, D v) { k.deadlock_check_ns = v; }},
      {"simulation",
       "load",
       KnobKind::number,
       {0.001, 100},
       "factor on the load of every poisson workload",
       [](K k, D v) { k.load_factor = v; }},
      {"buffer",
       "alpha",
       KnobKind::number,
       {1e-4, 64},
       "dynamic threshold of lossless ingress; default: the plan's",
       [](K k, D v) { k.alpha = v; }},
      {"buffer", "headroom", b, any_bytes,
       "of each lossless priority group of each port; default: the plan's",
       [](K k, D v) { k.headroom_bytes = v; }},
      {"buffer", "shared", b, any_bytes, "pool that the thresholds divide; default: the plan's",
       [](K k, D v) { k.shared_bytes = v; }},
      {"buffer", "xon_offset", b, any_bytes, "how far XON is below the threshold; default: the plan's",
       [](K k, D v) { k.xon_offset_bytes = v; }},
      {"buffer",
       "pause_quanta",
       KnobKind::number,
       {1, 65535},
       "pause time in each XOFF",
       [](K k, D v) { k.pause_quanta = v; }},
      {"ecn", "kmin", b, any_bytes, "where marking begins; default: the plan's",
       [](K k, D v) { k.kmin_bytes = v; }},
      {"ecn", "kmax", b, any_bytes, "above it every packet is marked; 0: no marks",
       [](K k, D v) { k.kmax_bytes = v; }},
      {"ecn", "pmax", KnobKind::fraction, fractions, "probability of a mark just below kmax",
       [](K k, D v) { k.pmax = v; }},
      {"ecn",
       "mark",
       KnobKind::word,
       {},
       "by the queue that a packet leaves behind, or that it finds: dequeue or enqueue",
       nullptr,
       [](K k, const std::string& v) { k.mark_at = v == "enqueue" ? MarkAt::enqueue : MarkAt::dequeue; },
       mark_places},
      {"transport",
       "mtu",
       b,
       {64, 9000},
       "payload of a full packet",
       [](K k, D v) { k.transport.mtu_bytes = whole<std::uint32_t>(v); }},
      {"transport",
       "header",
       b,
       {0, 256},
       "Ethernet to ICRC and FCS",
       [](K k, D v) { k.transport.header_bytes = whole<std::uint32_t>(v); }},
      {"transport",
       "gap",
       b,
       {0, 64},
       "preamble and gap after each frame",
       [](K k, D v) { k.transport.gap_bytes = whole<std::uint32_t>(v); }},
      {"transport",
       "ack_every",
       KnobKind::number,
       {1, 65535},
       "packets between ACKs; the last of a flow or a window always gets one",
       [](K k, D v) { k.transport.ack_every = whole<std::uint32_t>(v); }},
      {"transport",
       "window",
       b,
       {0, 1e12},
       "bytes in flight for each flow; 0: no limit",
       [](K k, D v) { k.transport.window_bytes = whole<std::uint64_t>(v); }},
      {"transport",
       "window_rtts",
       KnobKind::number,
       {0, 1000},
       "the same in round trips of the longest path at line rate: 1 is a bandwidth-delay product",
       [](K k, D v) { k.window_rtts = v; }},
      {"transport",
       "window_by_rate",
       KnobKind::word,
       {},
       "the window shrinks with the flow's rate: yes or no",
       nullptr,
       [](K k, const std::string& v) { k.window_by_rate = v; },
       yes_no},
      {"transport",
       "timeout",
       KnobKind::timeout,
       {1000, 100e9},
       "time without progress before a flow goes back, or InfiniBand's code for it",
       [](K k, D v) { k.timeout_ns = v; }},
      {"transport",
       "priority",
       KnobKind::number,
       {0, 7},
       "of data, if the workload names none",
       [](K k, D v) { k.priority = v; }},
      {"transport",
       "control_priority",
       KnobKind::number,
       {0, 7},
       "of ACK, NAK and CNP",
       [](K k, D v) { k.transport.control_priority = whole<std::uint8_t>(v); }},
      {"transport",
       "congestion_control",
       KnobKind::word,
       {},
       "dcqcn, dctcp, hpcc, swift or none",
       nullptr,
       [](K k, const std::string& v) { k.congestion_control = v; },
       controls},
      {"dcqcn",
       "preset",
       KnobKind::word,
       {},
       "source of the other values: paper, ns3, connectx, hpcc, hpcc-paper, hpcc-window",
       nullptr,
       [](K k, const std::string& v) { k.preset = v; },
       presets},
      {"dcqcn",
       "g",
       KnobKind::number,
       {1e-6, 1},
       "weight of new information in alpha",
       [](K k, D v) { k.g = v; }},
      {"dcqcn", "additive_increase", KnobKind::rate, rates, "R_AI", [](K k, D v) { k.additive_bps = v; }},
      {"dcqcn", "hyper_increase", KnobKind::rate, rates, "R_HAI", [](K k, D v) { k.hyper_bps = v; }},
      {"dcqcn", "minimum_rate", KnobKind::rate, rates, "of a flow", [](K k, D v) { k.minimum_bps = v; }},
      {"dcqcn", "alpha_interval", t, some_time, "time without a CNP before alpha decays",
       [](K k, D v) { k.alpha_ns = v; }},
      {"dcqcn", "increase_interval", t, some_time, "the timer T", [](K k, D v) { k.increase_ns = v; }},
      {"dcqcn", "cnp_interval", t, any_time, "at most one CNP for each flow in it",
       [](K k, D v) { k.cnp_ns = v; }},
      {"dcqcn", "decrease_interval", t, any_time, "time between two decreases; 0: each CNP counts",
       [](K k, D v) { k.decrease_ns = v; }},
      {"dcqcn", "largest_decrease", KnobKind::fraction, fractions,
       "largest share of the rate that one CNP takes", [](K k, D v) { k.largest_decrease = v; }},
      {"dcqcn", "initial_alpha", KnobKind::number, fractions, "alpha at the first CNP of a flow",
       [](K k, D v) { k.initial_alpha = v; }},
      {"dcqcn",
       "reference_rate",
       KnobKind::rate,
       {0, 1e13},
       "line speed for which the rates are given; others scale; 0: not scaled",
       [](K k, D v) { k.reference_bps = v; }},
      {"dcqcn",
       "clamp_target",
       KnobKind::word,
       {},
       "RT=RC at each CNP, even during recovery: yes or no",
       nullptr,
       [](K k, const std::string& v) { k.clamp_target = v; },
       yes_no},
      {"dcqcn",
       "byte_counter",
       b,
       {0, 1e12},
       "the counter BC; 0: none, only the timer counts",
       [](K k, D v) { k.increase_bytes = v; }},
      {"dcqcn",
       "fast_recovery_steps",
       KnobKind::number,
       {1, 1000},
       "F",
       [](K k, D v) { k.recovery_steps = v; }},
      {"dctcp",
       "weight",
       KnobKind::number,
       {1e-6, 1},
       "g: weight of the newest round trip in alpha",
       [](K k, D v) { k.transport.acknowledged.dctcp.g = v; }},
      {"dctcp", "additive", KnobKind::fraction, fractions,
       "added in each round trip without a mark; of the line rate",
       [](K k, D v) { k.transport.acknowledged.dctcp.additive_increase = v; }},
      {"hpcc", "target", KnobKind::fraction, some_part, "eta: how much of each link to use",
       [](K k, D v) { k.transport.acknowledged.hpcc.target = v; }},
      {"hpcc",
       "stages",
       KnobKind::number,
       {0, 1000},
       "maxStage: round trips of additive increase in a row",
       [](K k, D v) { k.transport.acknowledged.hpcc.stages = whole<std::uint32_t>(v); }},
      {"hpcc", "increase", KnobKind::fraction, fractions, "W_ai, in parts of a bandwidth-delay product",
       [](K k, D v) { k.transport.acknowledged.hpcc.additive_increase = v; }},
      {"swift",
       "target_rtts",
       KnobKind::number,
       {1, 1000},
       "base target delay, in round trips without queues",
       [](K k, D v) { k.transport.acknowledged.swift.target = v; }},
      {"swift",
       "flow_scaling",
       KnobKind::number,
       {0, 1000},
       "added to the target at most, for flows with small windows",
       [](K k, D v) { k.transport.acknowledged.swift.flow_scaling = v; }},
      {"swift",
       "packets_per_rtt",
       KnobKind::number,
       {0, 1000},
       "additive increase of the window in a round trip",
       [](K k, D v) { k.transport.acknowledged.swift.additive_increase = v; }},
      {"swift",
       "beta",
       KnobKind::number,
       {0, 1},
       "how much of the excess delay a decrease takes back",
       [](K k, D v) { k.transport.acknowledged.swift.beta = v; }},
  };
  return all;
}

Unit unit_of(KnobKind kind) {
  switch (kind) {
    case KnobKind::time:
      return Unit::nanoseconds;
    case KnobKind::timeout:
      return Unit::timeout;
    case KnobKind::rate:
      return Unit::bits_per_second;
    case KnobKind::fraction:
      return Unit::fraction;
    default:
      return Unit::bytes;
  }
}

}  // namespace

std::span<const Knob> knobs() { return table(); }

std::string_view kind_text(KnobKind kind) {
  switch (kind) {
    case KnobKind::number:
      return "number";
    case KnobKind::bytes:
      return "bytes";
    case KnobKind::time:
      return "time";
    case KnobKind::timeout:
      return "timeout";
    case KnobKind::rate:
      return "bit/s";
    case KnobKind::fraction:
      return "part";
    case KnobKind::word:
      return "word";
  }
  return "";
}

const Knob* find_knob(std::string_view name) {
  for (const auto& knob : knobs())
    if (fmt::format("{}.{}", knob.table, knob.key) == name) return &knob;
  for (const auto& knob : knobs())
    if (knob.key == name) return &knob;  // keys are unique except for their table
  return nullptr;
}

std::string set_knob(Knobs& values, const Knob& knob, std::string_view text) {
  if (knob.kind == KnobKind::word) {
    if (std::find(knob.words.begin(), knob.words.end(), text) == knob.words.end())
      return fmt::format("'{}' is none of {}", text, fmt::join(knob.words, ", "));
    knob.set_word(values, std::string(text));
    return {};
  }
  std::optional<double> value;
  if (knob.kind == KnobKind::number) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size() && std::isfinite(number)) value = number;
  } else {
    value = read_quantity(text, unit_of(knob.kind));
  }
  if (!value)
    return fmt::format("'{}' is not {}", text,
                       knob.kind == KnobKind::number ? "a number" : example(unit_of(knob.kind)));
  if (*value < knob.range.least || *value > knob.range.most)
    return fmt::format("{} is not between {} and {}", text, knob.range.least, knob.range.most);
  knob.set(values, *value);
  return {};
}

void read_knobs(Knobs& values, Table& root) {
  std::vector<std::string_view> done;
  for (const auto& first : knobs()) {
    if (std::find(done.begin(), done.end(), first.table) != done.end()) continue;
    done.push_back(first.table);
    auto found = root.table(first.table);
    if (!found) continue;
    for (const auto& knob : knobs()) {
      if (knob.table != first.table) continue;
      if (knob.kind == KnobKind::word) {
        if (const auto word = found->word(knob.key, knob.words)) knob.set_word(values, *word);
      } else {
        const auto value = knob.kind == KnobKind::number
                               ? found->number(knob.key, knob.range)
                               : found->quantity(knob.key, unit_of(knob.kind), knob.range);
        if (value) knob.set(values, *value);
      }
    }
    found->finish();
  }
}

}  // namespace weir::fabric::sim
