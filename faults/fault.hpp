// Faults as values: what is to go wrong, and where. The language (language.hpp) makes them, the parts that
// wrap a device ask about them. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::faults {

// What happens to a packet.
enum class Act : std::uint8_t { drop, duplicate, corrupt, delay, reorder, mark };

// Both ends belong to it.
struct Range {
  std::uint64_t first = 0, last = 0;
  bool has(std::uint64_t value) const { return value >= first && value <= last; }
  friend bool operator==(const Range&, const Range&) = default;
};

enum class Direction : std::uint8_t { out, in };  // leaves this program, or arrives at it

// The order in which a program makes its queue pairs counts from 1; this is the one of connection management.
inline constexpr std::uint64_t management_qp = 0;

// Which packets a fault is about: all conditions that are set must hold.
struct Packets {
  std::optional<Range> qp;   // by order of creation
  std::optional<Range> psn;  // counted from the first packet of the queue pair
  std::optional<Direction> direction;
  std::optional<std::uint8_t> kind;  // index into packet_kinds()
  // Of the packets that meet the conditions above, counted from 1.
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
  std::uint64_t amount = 0;  // delay: nanoseconds; reorder: packets; duplicate: further copies
  Packets packets;
  std::string text;  // as it was written
  std::size_t line = 0;
};

struct Plan {
  std::uint64_t seed = 1;
  std::vector<Fault> faults;
};

}  // namespace weir::faults
