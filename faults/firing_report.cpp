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
  std::string text = seconds(firing.at_ns) + "  ";
  if (firing.number == 0) return text + "QP " + std::to_string(firing.qp);
  text += std::string(name_of(firing.call)) + " " + std::to_string(firing.number);
  if (firing.qp != 0) text += " of QP " + std::to_string(firing.qp);
  return text;
}

std::string text_of(const ReceiveFaults::Firing& firing) {
  return seconds(firing.at_ns) + "  message " + std::to_string(firing.message) + " to QP " +
         std::to_string(firing.qp);
}

// ---- as JSON

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    std::array<char, 8> escape{};
    if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string json_time(std::uint64_t ns) {
  std::string text = seconds(ns);
  text.resize(text.size() - 2);  // without the unit
  return "{\"seconds\": " + text;
}

std::string json_of(const Firing& firing) {
  return json_time(firing.at_ns) + ", \"qp\": " + std::to_string(firing.qp) +
         ", \"qpn\": " + std::to_string(firing.qpn) + ", \"psn\": " + std::to_string(firing.psn) +
         ", \"packet\": " + quoted(name_of(firing.headers)) +
         ", \"direction\": " + (firing.direction == Direction::out ? "\"out\"" : "\"in\"") +
         ", \"bytes\": " + std::to_string(firing.bytes) + "}";
}
std::string json_of(const CallFaults::Firing& firing) {
  std::string text = json_time(firing.at_ns) + ", \"qp\": " + std::to_string(firing.qp);
  if (firing.number == 0) return text + "}";
  return text + ", \"call\": " + quoted(name_of(firing.call)) +
         ", \"number\": " + std::to_string(firing.number) + "}";
}
std::string json_of(const ReceiveFaults::Firing& firing) {
  return json_time(firing.at_ns) + ", \"qp\": " + std::to_string(firing.qp) +
         ", \"message\": " + std::to_string(firing.message) + "}";
}

// ---- outcomes

std::string why_never(const PacketFaults& packets, const Fault& fault, std::uint64_t met) {
  const std::uint64_t all = packets.packets(Direction::out) + packets.packets(Direction::in);
  if (begins_by_itself(fault) && fault.act != Act::qp_error) return "the program ended before";
  if (fault.where.qp && fault.where.qp->first > packets.queue_pairs_made())
    return "the program made " + counted(packets.queue_pairs_made(), "queue pair");
  if (fault.act == Act::rnr) return "no message met its conditions";
  if (begins_by_itself(fault)) return "it met no queue pair, or the program ended before";
  if (is_about_calls(fault.act)) return counted(met, "call") + " met its conditions";
  if (all == 0)
    return "no packet passed; both ends need --packets or --faults, and 127.0.0.1 stays with shared memory";
  if (met == 0) return "none of " + counted(all, "packet") + " met its conditions";
  return counted(met, "packet") + " met its conditions, and none was chosen of them";
}

struct Outcome {
  std::uint64_t met = 0, fired = 0;
  bool begun = false;  // it begins by itself, and has
  std::vector<std::string> firings = {}, firings_as_json = {};
  bool has_fired() const { return fired != 0 || begun; }
};

template <typename Tally>
Outcome outcome_of(const Tally& tally) {
  Outcome outcome{.met = tally.met, .fired = tally.fired};
  for (const auto& firing : tally.firings) {
    outcome.firings.push_back(text_of(firing));
    outcome.firings_as_json.push_back(json_of(firing));
  }
  return outcome;
}

Outcome outcome_of(const Deciders& deciders, std::size_t index, std::uint64_t now_ns) {
  const Fault& fault = deciders.packets.plan().faults[index];
  Outcome outcome = outcome_of(deciders.packets.tallies()[index]);
  if (is_about_calls(fault.act)) outcome = outcome_of(deciders.calls.tallies()[index]);
  if (fault.act == Act::rnr) outcome = outcome_of(deciders.receives.tallies()[index]);
  outcome.begun =
      begins_by_itself(fault) && fault.act != Act::qp_error && now_ns >= fault.where.from_ns.value_or(0);
  return outcome;
}

std::string text_of(const PacketFaults& packets, const Fault& fault, const Outcome& outcome) {
  if (!outcome.has_fired()) return "never fired: " + why_never(packets, fault, outcome.met) + "\n";
  std::string text = "fired\n";
  if (is_about_the_port(fault.act))
    text = "fired; " + counted(outcome.fired, "packet") + (fault.act == Act::pause ? " waited\n" : " lost\n");
  else if (!outcome.begun)
    text = "fired " + counted(outcome.fired, "time") + "\n";
  for (const std::string& firing : outcome.firings) text += "    " + firing + "\n";
  if (outcome.fired > outcome.firings.size())
    text += "    and " + std::to_string(outcome.fired - outcome.firings.size()) + " more\n";
  return text;
}

std::string json_of(const PacketFaults& packets, const Fault& fault, const Outcome& outcome) {
  std::string text = "{\"line\": " + std::to_string(fault.line) + ", \"fault\": " + quoted(fault.text) +
                     ", \"has_fired\": " + (outcome.has_fired() ? "true" : "false") +
                     ", \"fired\": " + std::to_string(outcome.fired);
  if (!outcome.has_fired()) text += ", \"why_never\": " + quoted(why_never(packets, fault, outcome.met));
  text += ", \"firings\": [";
  for (const std::string& firing : outcome.firings_as_json)
    text += (&firing == &outcome.firings_as_json.front() ? "" : ", ") + firing;
  return text + "]}";
}

// In the message of a workflow command; a property may have no ':' and no ',' either.
std::string escaped(std::string_view text, bool property = false) {
  std::string out;
  for (const char c : text) {
    const bool reserved = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    std::array<char, 8> escape{};
    std::snprintf(escape.data(), escape.size(), "%%%02X", static_cast<unsigned>(c));
    out += reserved ? escape.data() : std::string(1, c);
  }
  return out;
}

}  // namespace

std::string report_as_json(const Deciders& deciders, const Program& program) {
  const PacketFaults& packets = deciders.packets;
  std::string text =
      "{\"program\": " + quoted(program.name) + ", \"process\": " + std::to_string(program.process) +
      ", \"packets_out\": " + std::to_string(packets.packets(Direction::out)) +
      ", \"packets_in\": " + std::to_string(packets.packets(Direction::in)) + ", \"faults\": [";
  const auto& faults = packets.plan().faults;
  for (std::size_t i = 0; i < faults.size(); ++i)
    text += (i == 0 ? "" : ", ") + json_of(packets, faults[i], outcome_of(deciders, i, program.now_ns));
  return text + "]}\n";
}

std::string report_as_annotations(const Deciders& deciders, const Program& program, std::string_view file) {
  const PacketFaults& packets = deciders.packets;
  const auto& faults = packets.plan().faults;
  std::string text;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Outcome outcome = outcome_of(deciders, i, program.now_ns);
    text += outcome.has_fired() ? "::notice " : "::warning ";
    if (!file.empty())
      text += "file=" + escaped(file, true) + ",line=" + std::to_string(faults[i].line) + ",";
    std::string what = text_of(packets, faults[i], outcome);
    what.resize(what.size() - 1);  // without its end of line
    text += "title=weir faults in " + escaped(program.name, true) +
            "::" + escaped(faults[i].text + ": " + what) + "\n";
  }
  return text;
}

std::string report_for_people(const Deciders& deciders, const Program& program) {
  const PacketFaults& packets = deciders.packets;
  const auto& faults = packets.plan().faults;
  std::uint64_t fired = 0;
  std::string lines;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Outcome outcome = outcome_of(deciders, i, program.now_ns);
    fired += outcome.has_fired();
    lines += "  " + faults[i].text + ": " + text_of(packets, faults[i], outcome);
  }
  return "weir faults: " + std::string(program.name) + " (process " + std::to_string(program.process) +
         "): " + std::to_string(fired) + " of " + counted(faults.size(), "fault") + " fired; " +
         counted(packets.packets(Direction::out), "packet") + " left, " +
         std::to_string(packets.packets(Direction::in)) + " arrived\n" + lines;
}

}  // namespace weir::faults
