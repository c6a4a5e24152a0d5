// Multicast: which of this process's UD queue pairs are attached to which groups (IBA 10.5).
//
// A group is named by its MGID and has no owner: each process keeps its own attachments in its segment, and
// who sends to a group looks into the segments of all processes (datagram.cpp), and the packets that
// come to a group from other hosts go to those that are attached here. Threading: attach and detach
// from any thread; entries are read by neighbours while they change, so an entry's queue pair is stored last
// and cleared first.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "rnic/memory/qp_entries.hpp"
#include "rnic/memory/segment.hpp"

namespace weir::rnic {

// An IPv6 multicast address, or an IPv4 one in its mapped form, as RoCE v2 has them.
bool is_group(const Gid&);

class MulticastGroups {
 public:
  explicit MulticastGroups(Segment& segment) : segment_(segment) {}

  enum class Attached : std::uint8_t { ok, full };
  Attached attach(std::uint32_t qp_index, const Gid&);  // once more is ok too
  bool detach(std::uint32_t qp_index, const Gid&);      // false: it was not attached
  void forget(std::uint32_t qp_index);                  // from all groups
  // The queue pairs that are attached, each once.
  void append_attached(const Gid&, std::vector<std::uint32_t>& qp_indices);

 private:
  QpEntries<MulticastEntry> attachments() const;
  MulticastEntry* find(std::uint32_t qp_index, const Gid&);

  Segment& segment_;
  std::mutex mutex_;
};

}  // namespace weir::rnic
