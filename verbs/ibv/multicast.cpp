// ibv_attach_mcast, ibv_detach_mcast (ibv_attach_mcast(3)).
//
// On this host an attached queue pair receives at once what programs of its user send, and within moments
// what other users send (link/users/group_members.hpp). From other hosts a group's packets arrive on the
// interface where the process joined the group in the kernel, which tells the network (IGMP, MLD). Attaching
// also joins in the kernel, so a join through the connection manager only adds the choice of the interface.
#include "rnic/datagrams/multicast.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "link/explain.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/path.hpp"
#include "verbs/ibv/private_link.hpp"

namespace weir::verbs {

namespace {

rnic::Gid group_of(const ibv_gid& gid) {
  rnic::Gid group;
  std::memcpy(group.data(), gid.raw, group.size());
  return group;
}

}  // namespace

bool is_multicast(const ibv_gid& gid) { return rnic::is_group(group_of(gid)); }

namespace {

bool applies(const ibv_qp& qp, const ibv_gid* gid) {
  return qp.qp_type == IBV_QPT_UD && gid != nullptr && is_multicast(*gid);
}

// Joins in the kernel, so that the group's packets from other hosts arrive too. If no port can be opened,
// those of this host still arrive, and the user has been told why. Returns 0 or an errno.
int join_on_the_wire(NicProcess& nic, std::uint32_t qp_index, const ibv_gid& group,
                     std::optional<std::size_t> at) {
  const auto carrier = carrier_of_group(group, at);
  if (!carrier || !open_for_group(nic)) return 0;
  return nic.groups().join(qp_index, group_of(group), carrier->interface_index);
}

int attach(ibv_qp* qp, const ibv_gid* gid, std::optional<std::size_t> at) {
  if (qp == nullptr || !applies(*qp, gid)) return EINVAL;
  Context& context = context_of(qp->context);
  auto& groups = context.adapter().multicast();
  const std::uint32_t index = qp_of(qp).nic_qp->qpn().index();
  const rnic::Gid group = group_of(*gid);
  if (groups.attach(index, group) != rnic::MulticastGroups::Attached::ok) return ENOMEM;
  const int error = join_on_the_wire(*context.nic, index, *gid, at);
  if (error == 0)
    context.nic->groups().join_users(index, group);
  else if (!context.nic->groups().holds(index, group))
    groups.detach(index, group);
  return error;
}

}  // namespace
}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

// Ethernet has no LIDs, so the LID is ignored.
int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) { return attach(qp, gid, std::nullopt); }

int weir_attach_group(ibv_qp* qp, const ibv_gid* gid, int gid_index) {
  return attach(qp, gid, static_cast<std::size_t>(std::max(gid_index, 0)));
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  if (qp == nullptr || !applies(*qp, gid)) return EINVAL;
  Context& context = context_of(qp->context);
  const std::uint32_t index = qp_of(qp).nic_qp->qpn().index();
  context.nic->groups().leave(index, group_of(*gid));
  return context.adapter().multicast().detach(index, group_of(*gid)) ? 0 : EINVAL;
}

}  // extern "C"
