// The multicast groups whose packets come to this process from other hosts and from other users of this one,
// each held by the queue pairs that are attached to it.
//
// From other hosts: the UDP port's memberships, each for a group on an interface. One begins with the first
// queue pair and ends with the last. The kernel limits their number; queue pairs are limited by
// rnic::max_multicast_attachments, because each is attached first. From other users: link/users.
//
// Threading: all functions from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "rnic/types.hpp"
#include "verbs/nic/packet_network.hpp"

namespace weir::verbs {

class GroupMemberships {
 public:
  // It outlives this.
  explicit GroupMemberships(PacketNetwork& network) : network_(network) {}

  // Once its port is open. 0, or an errno; says on standard error, once, what is in the way.
  int join(std::uint32_t qp_index, const rnic::Gid& group, std::uint32_t interface);
  // From now on other users' datagrams come; says on standard error, once, if they cannot.
  void join_users(std::uint32_t qp_index, const rnic::Gid& group);
  void leave(std::uint32_t qp_index, const rnic::Gid& group);  // on all interfaces, and the users
  void forget(std::uint32_t qp_index);                         // in all groups
  bool holds(std::uint32_t qp_index, const rnic::Gid& group);

 private:
  using Membership = std::pair<rnic::Gid, std::uint32_t>;  // group, interface
  using Holders = std::map<Membership, std::set<std::uint32_t>>;
  Holders::iterator let_go(Holders::iterator membership, std::uint32_t qp_index);  // mutex_ held
  using Groups = std::map<rnic::Gid, std::set<std::uint32_t>>;
  Groups::iterator let_go(Groups::iterator group, std::uint32_t qp_index);  // mutex_ held
  void explain_refusal(int error, const rnic::Gid& group, std::uint32_t interface) const;

  PacketNetwork& network_;
  std::mutex mutex_;
  Holders holders_;
  Groups among_users_;  // by group, who holds it
};

}  // namespace weir::verbs
