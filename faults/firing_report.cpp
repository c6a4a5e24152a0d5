#include "faults/firing_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

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

std::string why_never(const PacketFaults& faults, const Packets& wanted, const PacketFaults::Tally& tally) {
  const std::uint64_t all = faults.packets(Direction::out) + faults.packets(Direction::in);
  if (wanted.qp && wanted.qp->first > faults.queue_pairs_made())
    return "the program made " + counted(faults.queue_pairs_made(), "queue pair");
  if (all == 0)
    return "no packet passed; both ends need --packets or --faults, and 127.0.0.1 stays with shared memory";
  if (tally.met == 0) return "none of " + counted(all, "packet") + " met its conditions";
  return counted(tally.met, "packet") + " met its conditions, and none was chosen of them";
}

}  // namespace

std::string report_for_people(const PacketFaults& faults, const Program& program) {
  const auto tallies = faults.tallies();
  const auto fired = std::ranges::count_if(tallies, [](const auto& tally) { return tally.fired != 0; });
  std::string text = "weir faults: " + std::string(program.name) + " (process " +
                     std::to_string(program.process) + "): " + std::to_string(fired) + " of " +
                     counted(tallies.size(), "fault") + " fired; " +
                     counted(faults.packets(Direction::out), "packet") + " left, " +
                     std::to_string(faults.packets(Direction::in)) + " arrived\n";
  for (std::size_t i = 0; i < tallies.size(); ++i) {
    const Fault& fault = faults.plan().faults[i];
    const PacketFaults::Tally& tally = tallies[i];
    text += "  " + fault.text + ": ";
    if (tally.fired == 0) {
      text += "never fired: " + why_never(faults, fault.packets, tally) + "\n";
      continue;
    }
    text += "fired " + counted(tally.fired, "time") + "\n";
    for (const Firing& firing : tally.firings) text += "    " + text_of(firing) + "\n";
    if (tally.fired > tally.firings.size())
      text += "    and " + std::to_string(tally.fired - tally.firings.size()) + " more\n";
  }
  return text;
}

}  // namespace weir::faults
