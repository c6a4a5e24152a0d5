#include "verbs/cm/multicast.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/ibv/private_link.hpp"

namespace weir::cm {
namespace {
bool same_group(const ibv_gid& one, const ibv_gid& other) {
  return std::memcmp(one.raw, other.raw, sizeof one.raw) == 0;
}
}  // namespace

bool is_multicast(const Endpoint& address) {
  constexpr std::uint8_t first_v4 = 224, last_v4 = 239, v6 = 0xff;
  if (address.is_v4()) return address.ip[12] >= first_v4 && address.ip[12] <= last_v4;
  return address.ip[0] == v6;
}

// `left` is set if the group was left before its join event was taken.
int attach(Memberships& memberships, const GroupPlace& to, ibv_qp* qp, bool& left) {
  const std::scoped_lock hold(memberships.mutex);
  const auto found =
      std::find_if(memberships.all.begin(), memberships.all.end(), [&](const auto& membership) {
        return !membership.attached && same_group(membership.address.gid(), to.group);
      });
  left = found == memberships.all.end();
  if (left) return 0;
  if (qp == nullptr || !found->receives) return 0;
  if (const int error = weir_attach_group(qp, &to.group, to.own_index); error != 0) {
    memberships.all.erase(found);
    return error;
  }
  found->attached = true;
  return 0;
}

int leave(Memberships& memberships, const Endpoint& address, ibv_qp* qp) {
  const std::scoped_lock hold(memberships.mutex);
  const auto found =
      std::find_if(memberships.all.begin(), memberships.all.end(),
                   [&](const auto& membership) { return membership.address.same_ip(address); });
  if (found == memberships.all.end()) return EADDRNOTAVAIL;
  int error = 0;
  const ibv_gid group = found->address.gid();
  if (found->attached && qp != nullptr) error = ibv_detach_mcast(qp, &group, 0);
  memberships.all.erase(found);
  return error;
}

}  // namespace weir::cm
