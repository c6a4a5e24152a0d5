#include "faults/conditions.hpp"

#include <algorithm>

#include "faults/call_names.hpp"
#include "faults/packet_kinds.hpp"
#include "faults/written_values.hpp"

namespace weir::faults {
namespace {

constexpr std::uint64_t max_psn = 0xffffff;
constexpr std::uint64_t max_count = 1'000'000'000'000;
constexpr std::string_view any_kind = "any";

Read read_queue_pair(std::string_view value, Fault& fault) {
  if (value == "cm") {
    fault.where.qp = Range{management_qp, management_qp};
    return {};
  }
  return store(range(value, 1, max_count), fault.where.qp);
}

Read read_direction(std::string_view value, Fault& fault) {
  constexpr std::string_view directions[] = {"out", "in", "any"};
  if (value == "out") fault.where.direction = Direction::out;
  if (value == "in") fault.where.direction = Direction::in;
  if (std::ranges::find(directions, value) != std::end(directions)) return {};
  return std::unexpected("is out, in or any, not '" + std::string(value) + "'" +
                         did_you_mean(value, directions));
}

Read read_call(std::string_view value, Fault& fault) {
  const auto found = named(value, call_names(), "a call like ibv_post_send");
  if (!found) return std::unexpected(found.error());
  fault.where.call = (*found)->call;
  return {};
}

Read read_times(std::string_view value, Fault& fault) {
  if (value != "all") return store(number(value, max_count), fault.where.times);
  fault.where.times = max_count;
  return {};
}

Read read_name(std::string_view value, std::string& into) {
  if (value.empty()) return std::unexpected("wants a name");
  into = value;
  return {};
}

Read read_every(std::string_view value, Fault& fault) {
  if (auto read = store(number(value, max_count), fault.where.every); !read) return read;
  if (*fault.where.every == 0) return std::unexpected("counts from 1");
  return {};
}

constexpr ConditionRule condition_table[] = {
    {{"qp", "the queue pair, by the order in which the program makes them; cm: connection management",
      "qp=1"},
     read_queue_pair},
    {{"psn",
      "the packet sequence number, counted from the queue pair's first; of requests, unless opcode= names "
      "others",
      "psn=5..9"},
     [](std::string_view value, Fault& fault) { return store(range(value, 0, max_psn), fault.where.psn); }},
    {{"direction", "out: it leaves this program, in: it arrives (default any)", "direction=out"},
     read_direction},
    {{"opcode", "the kind of packet (default any)", "opcode=ack"}, read_opcode},
    {{"call", "what refuse is about: ibv_post_send, ibv_post_recv, ibv_reg_mr, ibv_create_qp and others",
      "call=ibv_reg_mr"},
     read_call},
    {{"gid", "which address of the port is gone, by the index of its GID (default all)", "gid=0"},
     [](std::string_view value, Fault& fault) { return store(range(value, 0, max_count), fault.where.gid); }},
    {{"program", "only in programs of this name, or whose names begin like this: ib_*", "program=ib_send_bw"},
     [](std::string_view value, Fault& fault) { return read_name(value, fault.program); }},
    {{"host", "only in programs on the host of this name, or whose name begins like this", "host=node1"},
     [](std::string_view value, Fault& fault) { return read_name(value, fault.host); }},
    {{"nth", "of those that meet the conditions so far, counted from 1", "nth=100"},
     [](std::string_view value, Fault& fault) { return store(range(value, 1, max_count), fault.where.nth); }},
    {{"every", "each so many of them", "every=50"}, read_every},
    {{"rate", "a share of them, drawn from the seed", "rate=1%"},
     [](std::string_view value, Fault& fault) { return store(share(value), fault.where.rate); }},
    {{"times", "how often at most, or all; with psn= for each packet (default then 1), else in all",
      "times=3"},
     read_times},
    {{"from", "not before this time since the program's NIC was made", "from=12ms"},
     [](std::string_view value, Fault& fault) { return store(duration(value), fault.where.from_ns); }},
    {{"until", "not from this time on", "until=40ms"},
     [](std::string_view value, Fault& fault) { return store(duration(value), fault.where.until_ns); }},
};

}  // namespace

Read read_opcode(std::string_view value, Fault& fault) {
  if (value == any_kind) {
    fault.where.kind.reset();
    return {};
  }
  auto names = names_of(packet_kinds());
  const auto found = std::ranges::find(names, value);
  if (found == names.end()) {
    names.push_back(any_kind);
    return std::unexpected("does not know '" + std::string(value) + "'" + did_you_mean(value, names) +
                           "; weir faults list names them");
  }
  fault.where.kind = static_cast<std::uint8_t>(found - names.begin());
  return {};
}

std::span<const ConditionRule> condition_rules() { return condition_table; }

std::span<const Condition> conditions() {
  static const auto all = shown_of<Condition>(condition_table);
  return all;
}

}  // namespace weir::faults
