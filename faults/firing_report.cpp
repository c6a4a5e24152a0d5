#include "faults/firing_report.hpp"

#include <array>
#include <cstdio>
#include <vector>

#include "faults/call_names.hpp"

namespace weir::faults {
namespace {

std::string seconds(std::uint64_t ns) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6f s", static_cast<double>(ns) / 1e9);
  return text.data();
}

std::string counted(std::uint64_t number, std::string_view of) {
  return std::to_string(number) + " " + std::string(of) + (number == 1 ? "" : "s");
}

std::string text_of(const Firing& firing) {
  std::string queue_pair = "connection management";
  if (firing.qp != management_qp) {
    std::array<char, 64> text;
    std::snprintf(text.data(), text.size(), "QP %llu (0x%x)", static_cast<unsigned long long>(firing.qp),
                  firing.qpn);
    queue_pair = text.data();
  }
  return seconds(firing.at_ns) + "  " + queue_pair + "  PSN " + std::to_string(firing.psn) + "  " +
         name_of(firing.headers) + (firing.direction == Direction::out ? ", leaving, " : ", arriving, ") +
         counted(firing.bytes, "byte");
}

std::string text_of(const CallFaults::Firing& firing) {
  std::string text =
      seconds(firing.at_ns) + "  " + std::string(name_of(firing.call)) + " " + std::to_string(firing.number);
  if (firing.qp != 0) text += " of QP " + std::to_string(firing.qp);
  return text;
}

std::string why_never(const PacketFaults& packets, const Fault& fault, std::uint64_t met) {
  const std::uint64_t all = packets.packets(Direction::out) + packets.packets(Direction::in);
  if (begins_by_itself(fault.act)) return "the program ended before";
  if (fault.where.qp && fault.where.qp->first > packets.queue_pairs_made())
    return "the program made " + counted(packets.queue_pairs_made(), "queue pair");
  if (is_about_calls(fault.act)) return counted(met, "call") + " met its conditions";
  if (all == 0)
    return "no packet passed; both ends need --packets or --faults, and 127.0.0.1 stays with shared memory";
  if (met == 0) return "none of " + counted(all, "packet") + " met its conditions";
  return counted(met, "packet") + " met its conditions, and none was chosen of them";
}

struct Outcome {
  std::uint64_t met = 0, fired = 0;
  bool begun = false;  // it begins by itself, and has
  std::vector<std::string> firings = {};
  bool has_fired() const { return fired != 0 || begun; }
};

template <typename Tally>
Outcome outcome_of(const Tally& tally) {
  Outcome outcome{.met = tally.met, .fired = tally.fired};
  for (const auto& firing : tally.firings) outcome.firings.push_back(text_of(firing));
  return outcome;
}

Outcome outcome_of(const PacketFaults& packets, const CallFaults& calls, std::size_t index,
                   std::uint64_t now_ns) {
  const Fault& fault = packets.plan().faults[index];
  Outcome outcome =
      is_about_calls(fault.act) ? outcome_of(calls.tallies()[index]) : outcome_of(packets.tallies()[index]);
  outcome.begun = begins_by_itself(fault.act) && now_ns >= fault.where.from_ns.value_or(0);
  return outcome;
}

std::string text_of(const PacketFaults& packets, const Fault& fault, const Outcome& outcome) {
  if (!outcome.has_fired()) return "never fired: " + why_never(packets, fault, outcome.met) + "\n";
  std::string text = "fired\n";
  if (fault.act == Act::down)
    text = "fired; " + counted(outcome.fired, "packet") + " lost\n";
  else if (!outcome.begun)
    text = "fired " + counted(outcome.fired, "time") + "\n";
  for (const std::string& firing : outcome.firings) text += "    " + firing + "\n";
  if (outcome.fired > outcome.firings.size())
    text += "    and " + std::to_string(outcome.fired - outcome.firings.size()) + " more\n";
  return text;
}

}  // namespace

std::string report_for_people(const PacketFaults& packets, const CallFaults& calls, const Program& program) {
  const auto& faults = packets.plan().faults;
  std::uint64_t fired = 0;
  std::string lines;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Outcome outcome = outcome_of(packets, calls, i, program.now_ns);
    fired += outcome.has_fired();
    lines += "  " + faults[i].text + ": " + text_of(packets, faults[i], outcome);
  }
  return "weir faults: " + std::string(program.name) + " (process " + std::to_string(program.process) +
         "): " + std::to_string(fired) + " of " + counted(faults.size(), "fault") + " fired; " +
         counted(packets.packets(Direction::out), "packet") + " left, " +
         std::to_string(packets.packets(Direction::in)) + " arrived\n" + lines;
}

}  // namespace weir::faults
