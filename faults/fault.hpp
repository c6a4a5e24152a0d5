// Faults as values: what is to go wrong, and where. The language (language.hpp) makes them, the parts that
// wrap a device ask about them. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::faults {

enum class Act : std::uint8_t {
  // to a packet:
  drop,
  duplicate,
  corrupt,
  delay,
  reorder,
  mark,
  down,  // to all of them: the port is down
  // to a call of the program:
  refuse,    // it returns an errno
  complete,  // a completion has another status
  // to the program:
  kill,
  stop,
};
constexpr bool is_about_packets(Act act) { return act <= Act::down; }
constexpr bool is_about_calls(Act act) { return act == Act::refuse || act == Act::complete; }
// Begins at a time instead of with something that the program does.
constexpr bool begins_by_itself(Act act) { return act == Act::down || act >= Act::kill; }

// The calls that can be refused, and what is taken from a completion queue.
enum class Call : std::uint8_t {
  alloc_pd,
  create_cq,
  create_qp,
  modify_qp,
  post_recv,
  post_send,
  reg_mr,
  completion
};

// Both ends belong to it.
struct Range {
  std::uint64_t first = 0, last = 0;
  bool has(std::uint64_t value) const { return value >= first && value <= last; }
  friend bool operator==(const Range&, const Range&) = default;
};

enum class Direction : std::uint8_t { out, in };  // leaves this program, or arrives at it

// The order in which a program makes its queue pairs counts from 1; this is the one of connection management.
inline constexpr std::uint64_t management_qp = 0;

// Which packets or calls a fault is about: all conditions that are set must hold.
struct Where {
  std::optional<Range> qp;   // by order of creation
  std::optional<Range> psn;  // counted from the first packet of the queue pair
  std::optional<Direction> direction;
  std::optional<std::uint8_t> kind;  // index into packet_kinds()
  std::optional<Call> call;
  // Of those that meet the conditions above, counted from 1.
  std::optional<Range> nth;
  std::optional<std::uint64_t> every;
  std::optional<double> rate;  // 0 to 1
  // How often it fires: for each packet if `psn` is set (its retransmissions count), else in all.
  std::optional<std::uint64_t> times;
  // Since the program's NIC was made.
  std::optional<std::uint64_t> from_ns, until_ns;
};

struct Fault {
  Act act = Act::drop;
  // delay: nanoseconds; reorder: packets; duplicate: further copies; refuse: errno; complete: ibv_wc_status
  std::uint64_t amount = 0;
  Where where;
  std::string text;  // as it was written
  std::size_t line = 0;
};

struct Plan {
  std::uint64_t seed = 1;
  std::vector<Fault> faults;
};

}  // namespace weir::faults
