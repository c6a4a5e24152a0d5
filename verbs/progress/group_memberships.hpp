// The multicast groups whose packets come to this process from other hosts: the UDP port's memberships, each
// held by the queue pairs that are attached to its group.
//
// A membership is for a group on an interface. It begins with the first queue pair and ends with the last.
// The kernel limits their number; queue pairs are limited by rnic::max_multicast_attachments, because each is
// attached first.
//
// Threading: all functions from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "rnic/types.hpp"
#include "verbs/progress/packet_network.hpp"

namespace weir::verbs {

class GroupMemberships {
 public:
  // It outlives this.
  explicit GroupMemberships(PacketNetwork& network) : network_(network) {}

  // Once its port is open. 0, or an errno; says on standard error, once, what is in the way.
  int join(std::uint32_t qp_index, const rnic::Gid& group, std::uint32_t interface);
  void leave(std::uint32_t qp_index, const rnic::Gid& group);  // on all interfaces
  void forget(std::uint32_t qp_index);                         // in all groups
  bool holds(std::uint32_t qp_index, const rnic::Gid& group);

 private:
  using Membership = std::pair<rnic::Gid, std::uint32_t>;  // group, interface
  using Holders = std::map<Membership, std::set<std::uint32_t>>;
  Holders::iterator let_go(Holders::iterator membership, std::uint32_t qp_index);  // mutex_ held
  void explain_refusal(int error, const rnic::Gid& group, std::uint32_t interface) const;

  PacketNetwork& network_;
  std::mutex mutex_;
  Holders holders_;
};

}  // namespace weir::verbs
