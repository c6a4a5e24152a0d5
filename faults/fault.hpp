// Faults as values: what is to go wrong, and where. The language (language.hpp) makes them, the parts that
// wrap a device ask about them. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::faults {

enum class Act : std::uint8_t {
  // to a packet:
  drop,
  duplicate,
  corrupt,
  alter,  // as corrupt, and the ICRC is made right
  delay,
  reorder,
  mark,
  // to all of them, and to the port:
  pause,     // none leaves
  gid_gone,  // an address of it is
  down,
  // to a receiver:
  rnr,  // messages find no receive
  // to a call of the program:
  refuse,    // it returns an errno
  complete,  // a completion has another status
  // to a queue pair: it is in error
  qp_error,
  // to the program:
  kill,
  stop,
};
constexpr bool is_about_packets(Act act) { return act <= Act::down; }
constexpr bool is_about_the_port(Act act) { return act >= Act::pause && act <= Act::down; }
// Decided call by call: by call_faults.
constexpr bool is_about_calls(Act act) { return act >= Act::refuse && act <= Act::qp_error; }
// The calls that can be refused, and what is taken from a completion queue.
enum class Call : std::uint8_t {
  alloc_pd,
  create_cq,
  create_qp,
  modify_qp,
  post_recv,
  post_send,
  reg_mr,
  start_poll,
  wr_complete,
  completion,
  polled  // a completion, whatever its status, was taken: its queue pair may end
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
  std::optional<Range> gid;  // by index
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
  // delay, rnr: nanoseconds; reorder: packets; duplicate: further copies; refuse: errno; complete:
  // ibv_wc_status
  std::uint64_t amount = 0;
  Where where;
  std::string text = {};  // as it was written
  // In programs of which name ("ib_*": which begins so), on hosts of which name; empty: in all.
  std::string program = {}, host = {};
  std::size_t line = 0;
};

// Begins at a time instead of with something that the program does.
inline bool begins_by_itself(const Fault& fault) {
  return is_about_the_port(fault.act) || fault.act >= Act::kill ||
         (fault.act == Act::qp_error && !fault.where.nth);
}

struct Plan {
  std::uint64_t seed = 1;
  std::vector<Fault> faults;
};
// Keeps the faults that are about that program on that host.
void keep_for(Plan& plan, std::string_view program, std::string_view host);

}  // namespace weir::faults
