#include "verbs/nic/group_memberships.hpp"

#include <net/if.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "link/explain.hpp"

namespace weir::verbs {
namespace {

std::string interface_text(std::uint32_t interface) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(interface, name.data()) != nullptr ? name.data() : std::to_string(interface);
}

}  // namespace

// For the user: the program can only say that it could not join. Call under mutex_.
void GroupMemberships::explain_refusal(int error, const rnic::Gid& group, std::uint32_t interface) const {
  static std::atomic_flag said;
  if (!link::first_time(said)) return;
  std::string why = "cannot join multicast group " + text_of(group) + " on " + interface_text(interface) +
                    ": " + std::strerror(error);
  if (error == ENOBUFS)
    why += "; this process is in " + std::to_string(holders_.size()) +
           " groups, and the kernel lets a socket be in net.ipv4.igmp_max_memberships: raise it with sysctl";
  else if (error == ENOMEM)
    why += "; the kernel's net.core.optmem_max bounds how many groups a socket is in: raise it with sysctl";
  else
    why += "; choose the address of an interface that takes multicast";
  link::explain(why);
}

int GroupMemberships::join(std::uint32_t qp_index, const rnic::Gid& group, std::uint32_t interface) {
  const std::lock_guard lock(mutex_);
  const Membership membership(group, interface);
  if (const auto found = holders_.find(membership); found != holders_.end()) {
    found->second.insert(qp_index);
    return 0;
  }
  if (const int error = network_.join(group, interface); error != 0) {
    explain_refusal(error, group, interface);
    return error == ENOBUFS ? ENOMEM : error;
  }
  holders_[membership].insert(qp_index);
  return 0;
}

GroupMemberships::Holders::iterator GroupMemberships::let_go(Holders::iterator membership,
                                                             std::uint32_t qp_index) {
  if (membership->second.erase(qp_index) == 0 || !membership->second.empty()) return std::next(membership);
  network_.leave(membership->first.first, membership->first.second);
  return holders_.erase(membership);
}

void GroupMemberships::join_users(std::uint32_t qp_index, const rnic::Gid& group) {
  link::GroupMembers* const members = network_.members();
  if (members == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto known = among_users_.find(group);
  if (known != among_users_.end()) {
    known->second.insert(qp_index);
    return;
  }
  if (members->join(group)) {
    among_users_[group].insert(qp_index);
    return;
  }
  static std::atomic_flag said;
  if (link::first_time(said))
    link::explain("what other users of this host send to multicast group " + text_of(group) +
                  " does not come to this program: another process has the name by which its place is found; "
                  "end that process, or start this program again");
}

GroupMemberships::Groups::iterator GroupMemberships::let_go(Groups::iterator group, std::uint32_t qp_index) {
  if (group->second.erase(qp_index) == 0 || !group->second.empty()) return std::next(group);
  network_.members()->leave(group->first);
  return among_users_.erase(group);
}

void GroupMemberships::leave(std::uint32_t qp_index, const rnic::Gid& group) {
  const std::lock_guard lock(mutex_);
  auto at = holders_.lower_bound({group, 0});
  while (at != holders_.end() && at->first.first == group) at = let_go(at, qp_index);
  if (const auto known = among_users_.find(group); known != among_users_.end()) let_go(known, qp_index);
}

void GroupMemberships::forget(std::uint32_t qp_index) {
  const std::lock_guard lock(mutex_);
  for (auto at = holders_.begin(); at != holders_.end();) at = let_go(at, qp_index);
  for (auto at = among_users_.begin(); at != among_users_.end();) at = let_go(at, qp_index);
}

bool GroupMemberships::holds(std::uint32_t qp_index, const rnic::Gid& group) {
  const std::lock_guard lock(mutex_);
  for (auto at = holders_.lower_bound({group, 0}); at != holders_.end() && at->first.first == group; ++at)
    if (at->second.contains(qp_index)) return true;
  return false;
}

}  // namespace weir::verbs
