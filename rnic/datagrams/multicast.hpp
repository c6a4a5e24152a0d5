// Multicast: which of this process's UD queue pairs are attached to which groups (IBA 10.5).
//
// A group is named by its MGID and has no owner. Each process keeps its own attachments in its segment. A
// sender to a group reads the segments of all processes (datagram.cpp); packets that arrive for a group from
// other hosts go to the queue pairs attached here. Threading: attach and detach from any thread; neighbours
// read entries while they change, so an entry's queue pair is stored last and cleared first.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <vector>

#include "rnic/memory/qp_entries.hpp"
#include "rnic/memory/segment.hpp"

namespace weir::rnic {

// An IPv6 multicast address, or an IPv4 one in mapped form, as in RoCE v2.
bool is_group(const Gid&);

class MulticastGroups {
 public:
  explicit MulticastGroups(Segment& segment) : segment_(segment) {}

  enum class Attached : std::uint8_t { ok, full };
  Attached attach(std::uint32_t qp_index, const Gid&);  // repeating it is ok
  bool detach(std::uint32_t qp_index, const Gid&);      // false: it was not attached
  void forget(std::uint32_t qp_index);                  // detaches it from all groups
  // The attached queue pairs, each once.
  void append_attached(const Gid&, std::vector<std::uint32_t>& qp_indices);

 private:
  QpEntries<MulticastEntry> attachments() const;
  MulticastEntry* find(std::uint32_t qp_index, const Gid&);

  Segment& segment_;
  std::mutex mutex_;
};

}  // namespace weir::rnic
