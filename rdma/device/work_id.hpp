// What a completion's wr_id encodes: which connection, and which of its two queues (a failed completion has
// no opcode). The connection is named by a tag that is never reused, so a completion that outlives its
// connection matches no connection.
#pragma once

#include <cstdint>

namespace weir::rdma {

enum class WorkKind : std::uint8_t { receive = 0, send = 1 };

struct WorkId {
  std::uint64_t tag = 0;  // 56 bits
  WorkKind kind = WorkKind::receive;

  constexpr std::uint64_t encode() const { return tag << 8 | static_cast<std::uint8_t>(kind); }
  static constexpr WorkId decode(std::uint64_t wr_id) {
    return {wr_id >> 8, static_cast<WorkKind>(wr_id & 1)};
  }
};

// A tag: a slot of the engine's table, and how often the slot was used before.
constexpr std::uint64_t make_tag(std::uint32_t slot, std::uint32_t generation) {
  return std::uint64_t{generation} << 24 | slot;
}
constexpr std::uint32_t slot_of(std::uint64_t tag) { return static_cast<std::uint32_t>(tag & 0xffffff); }
constexpr std::uint32_t generation_of(std::uint64_t tag) { return static_cast<std::uint32_t>(tag >> 24); }

}  // namespace weir::rdma
