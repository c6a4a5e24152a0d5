// Address handles, and the GRH that a datagram's receiver finds in front of its payload.
//
// On RoCE v2 the 40 bytes of GRH space hold the packet's IP header: an IPv6 header fills them, an
// IPv4 header occupies the last 20 (Annex A17.4.5.2). To reply to a datagram, we read the
// addresses back from that header.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "rnic/datagrams/grh.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/lid.hpp"
#include "verbs/ibv/objects.hpp"
#include "verbs/ibv/path.hpp"

namespace weir::verbs {
namespace {

std::atomic<int> address_handles{0};

rnic::Gid nic_gid(const ibv_gid& gid) {
  rnic::Gid bytes;
  std::memcpy(bytes.data(), gid.raw, bytes.size());
  return bytes;
}

ibv_gid verbs_gid(const rnic::Gid& bytes) {
  ibv_gid gid;
  std::memcpy(gid.raw, bytes.data(), bytes.size());
  return gid;
}

rnic::Grh grh_of(const ibv_global_route& route) {
  return rnic::write_grh({.source = nic_gid(gid_at(route.sgid_index).value_or(GidEntry{}).gid),
                          .destination = nic_gid(route.dgid),
                          .traffic_class = route.traffic_class,
                          .hop_limit = route.hop_limit,
                          .flow_label = route.flow_label});
}

// Group members on this host receive the datagram even if no packet can leave.
void find_path_to_group(NicProcess& nic, const ibv_ah_attr& attr, rnic::DatagramPath& path) {
  path.group = nic_gid(attr.grh.dgid);
  const auto carrier = carrier_of_group(attr.grh.dgid, attr.grh.sgid_index);
  if (!carrier || !open_for_group(nic)) return;
  path.packet_bytes = bytes_of(mtu_of(*carrier));
  path.interface = carrier->interface_index;
}

// Whether datagrams reach that destination, and by which path. An unreachable destination still gets an
// address handle: datagrams sent to it are lost.
bool find_path(NicProcess& nic, const ibv_ah_attr& attr, rnic::DatagramPath& path) {
  const Reach reach = reach_of(attr, rnic::QpType::ud);
  if (reach != Reach::packets) return reach == Reach::same_host;
  if (open_way(nic, attr) != 0) return false;
  const GidEntry source = gid_at(attr.grh.sgid_index).value_or(GidEntry{});
  path.packet_bytes = bytes_of(mtu_of(source));
  path.interface = interface_towards(attr.grh.dgid, source);
  return true;
}

}  // namespace

std::uint32_t path_kbps_of(const ibv_ah_attr& attr) {
  const int mbps = ibv_rate_to_mbps(static_cast<ibv_rate>(attr.static_rate));
  const auto kbps = static_cast<std::uint32_t>(std::max(mbps, 0)) * 1000;
  return kbps < max_rate_limit_kbps ? kbps : 0;
}

rnic::DatagramAddress datagram_address(const Ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  if (ah == nullptr) return {};
  const bool to_all = rnic::Qpn(qpn) == rnic::multicast_destination;
  const bool leads_there = to_all ? ah->to_group : ah->reachable;
  return {leads_there ? rnic::Qpn(qpn) : rnic::Qpn(), qkey, &ah->path};
}

}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" {

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* attr) {
  if (address_handles.fetch_add(1) >= max_address_handles) {
    address_handles.fetch_sub(1);
    errno = ENOMEM;
    return nullptr;
  }
  const ibv_ah_attr to = with_grh(*attr);
  const bool bad_index = to.is_global && !gid_at(to.grh.sgid_index);
  const bool nowhere = !to.is_global && to.dlid != port_lid();  // IBA A17.4.4: RoCE always has a GRH
  if (attr->port_num != 1 || bad_index || nowhere) {
    address_handles.fetch_sub(1);
    errno = EINVAL;
    return nullptr;
  }
  auto* ah = new Ah{};
  ah->ah = {pd->context, pd, 0};
  ah->path_kbps = path_kbps_of(*attr);
  if (to.is_global && is_multicast(to.grh.dgid)) {
    ah->to_group = true;
    find_path_to_group(*context_of(pd->context).nic, to, ah->path);
  } else {
    ah->reachable = find_path(*context_of(pd->context).nic, to, ah->path);
  }
  // Our own LID still gets a GRH, because every RoCE datagram has one. Its source and destination are this
  // host.
  ibv_global_route route{};
  route.dgid = gid_at(0).value_or(GidEntry{}).gid;
  route.hop_limit = 1;
  if (to.is_global) route = to.grh;
  ah->path.grh = grh_of(route);
  pd_of(pd).users.fetch_add(1);
  return &ah->ah;
}

int ibv_destroy_ah(ibv_ah* ah) {
  drop_user(pd_of(ah->pd));
  delete reinterpret_cast<Ah*>(ah);
  address_handles.fetch_sub(1);
  return 0;
}

int ibv_init_ah_from_wc(ibv_context*, uint8_t port, ibv_wc* wc, ibv_grh* grh, ibv_ah_attr* attr) {
  *attr = {};
  attr->port_num = port;
  if (!(wc->wc_flags & IBV_WC_GRH)) return 0;
  const auto* const bytes = reinterpret_cast<const std::byte*>(grh);
  const std::span<const std::byte, weir::rnic::grh_bytes> all(bytes, weir::rnic::grh_bytes);
  const weir::rnic::GrhFields found = weir::rnic::read_grh(all);
  attr->is_global = 1;
  attr->grh.dgid = verbs_gid(found.source);
  attr->grh.sgid_index = static_cast<std::uint8_t>(find_gid(verbs_gid(found.destination)).value_or(0));
  attr->grh.hop_limit = 0xff;
  attr->grh.traffic_class = found.traffic_class;
  attr->grh.flow_label = found.flow_label;
  return 0;
}

ibv_ah* ibv_create_ah_from_wc(ibv_pd* pd, ibv_wc* wc, ibv_grh* grh, uint8_t port) {
  ibv_ah_attr attr;
  ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr);
  return ibv_create_ah(pd, &attr);
}

// There is no Ethernet underneath: return the addresses of a loopback interface.
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t eth_mac[6], uint16_t* vid) {
  std::memset(eth_mac, 0, 6);
  if (vid != nullptr) *vid = 0xffff;
  return 0;
}

}  // extern "C"
