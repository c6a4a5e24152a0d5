// ibv_attach_mcast, ibv_detach_mcast (ibv_attach_mcast(3)).
//
// There is no fabric to join and no router between: being attached is all that it takes to receive, and any
// queue pair may send. So joining a group through the connection manager adds nothing here but a GID.
#include <cerrno>
#include <cstring>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {

// An IPv6 multicast address, or an IPv4 one in its mapped form, as RoCE has them.
bool is_multicast(const ibv_gid& gid) {
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (gid.raw[0] == 0xff) return true;
  return std::memcmp(gid.raw, mapped, sizeof mapped) == 0 && gid.raw[12] >> 4 == 0xe;
}

namespace {

bool applies(const ibv_qp& qp, const ibv_gid* gid) {
  return qp.qp_type == IBV_QPT_UD && gid != nullptr && is_multicast(*gid);
}
rnic::Gid group_of(const ibv_gid& gid) {
  rnic::Gid group;
  std::memcpy(group.data(), gid.raw, group.size());
  return group;
}

}  // namespace
}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

// The LID means nothing on Ethernet.
int ibv_attach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  if (qp == nullptr || !applies(*qp, gid)) return EINVAL;
  auto& groups = context_of(qp->context).adapter().multicast();
  const auto attached = groups.attach(qp_of(qp).nic_qp->qpn().index(), group_of(*gid));
  return attached == weir::rnic::MulticastGroups::Attached::ok ? 0 : ENOMEM;
}

int ibv_detach_mcast(ibv_qp* qp, const ibv_gid* gid, uint16_t) {
  if (qp == nullptr || !applies(*qp, gid)) return EINVAL;
  auto& groups = context_of(qp->context).adapter().multicast();
  return groups.detach(qp_of(qp).nic_qp->qpn().index(), group_of(*gid)) ? 0 : EINVAL;
}

}  // extern "C"
