// Address handles, and the GRH that a datagram's receiver finds in front of its payload.
//
// On RoCE v2 the 40 bytes of GRH space hold the packet's IP header: an IPv6 header fills them, an IPv4 header
// stands in the last 20 (Annex A17.4.5.2). Replying to a received datagram reads the addresses back from
// there.
#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

constexpr std::uint8_t next_header_udp = 17;
constexpr std::size_t ipv4_at = 20;
std::atomic<int> address_handles{0};

bool is_mapped_v4(const ibv_gid& gid) {
  static constexpr std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, prefix, sizeof prefix) == 0;
}

void write_grh(std::byte* grh, const ibv_gid& source, const ibv_gid& destination,
               const ibv_global_route& route) {
  auto* bytes = reinterpret_cast<std::uint8_t*>(grh);
  std::memset(bytes, 0, rnic::grh_bytes);
  if (is_mapped_v4(destination)) {
    std::uint8_t* ip = bytes + ipv4_at;
    ip[0] = 0x45;
    ip[1] = route.traffic_class;
    ip[8] = route.hop_limit;
    ip[9] = next_header_udp;
    std::memcpy(ip + 12, source.raw + 12, 4);
    std::memcpy(ip + 16, destination.raw + 12, 4);
    return;  // the length, and the checksum over it, each datagram has of its own (rnic/datagram.cpp)
  }
  const std::uint32_t version =
      htonl(6u << 28 | std::uint32_t{route.traffic_class} << 20 | (route.flow_label & 0xfffff));
  std::memcpy(bytes, &version, 4);
  bytes[6] = next_header_udp;
  bytes[7] = route.hop_limit;
  std::memcpy(bytes + 8, source.raw, 16);
  std::memcpy(bytes + 24, destination.raw, 16);
}

ibv_gid mapped(const std::uint8_t* v4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, v4, 4);
  return gid;
}

struct Addresses {
  ibv_gid source, destination;
  std::uint8_t traffic_class, hop_limit;
  std::uint32_t flow_label;
};

Addresses read_grh(const ibv_grh* grh) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(grh);
  Addresses a{};
  if (bytes[0] >> 4 == 6) {
    std::memcpy(a.source.raw, bytes + 8, 16);
    std::memcpy(a.destination.raw, bytes + 24, 16);
    a.traffic_class = static_cast<std::uint8_t>(bytes[0] << 4 | bytes[1] >> 4);
    a.hop_limit = bytes[7];
    a.flow_label = (bytes[1] & 0xfu) << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
  } else {
    a.source = mapped(bytes + ipv4_at + 12);
    a.destination = mapped(bytes + ipv4_at + 16);
    a.traffic_class = bytes[ipv4_at + 1];
    a.hop_limit = bytes[ipv4_at + 8];
  }
  return a;
}

}  // namespace

std::uint32_t path_kbps_of(const ibv_ah_attr& attr) {
  const int mbps = ibv_rate_to_mbps(static_cast<ibv_rate>(attr.static_rate));
  const auto kbps = static_cast<std::uint32_t>(std::max(mbps, 0)) * 1000;
  return kbps < max_rate_limit_kbps ? kbps : 0;
}

constexpr std::uint32_t multicast_qpn = 0xffffff;  // IBA 4.1.1

rnic::DatagramAddress datagram_address(const Ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
  if (ah == nullptr) return {};
  const bool group = qpn == multicast_qpn && is_multicast(ah->dgid);
  const rnic::Qpn alone = ah->reachable ? rnic::Qpn(qpn) : rnic::Qpn();
  return {group ? rnic::multicast_destination : alone, qkey, ah->grh};
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
  const bool bad_index = attr->is_global && !gid_at(attr->grh.sgid_index);
  const bool nowhere = !attr->is_global && attr->dlid != the_lid;  // IBA A17.4.4: RoCE has a GRH always
  if (attr->port_num != 1 || bad_index || nowhere) {
    address_handles.fetch_sub(1);
    errno = EINVAL;
    return nullptr;
  }
  auto* ah = new Ah{};
  ah->ah = {pd->context, pd, 0};
  ah->path_kbps = path_kbps_of(*attr);
  if (attr->is_global) ah->dgid = attr->grh.dgid;
  ah->reachable = !attr->is_global || find_gid(attr->grh.dgid).has_value();
  // Who is told of a LID alone gets a GRH all the same, as on RoCE every datagram has one: from here, to
  // here.
  ibv_global_route route{};
  route.dgid = gid_at(0).value_or(GidEntry{}).gid;
  route.hop_limit = 1;
  if (attr->is_global) route = attr->grh;
  write_grh(ah->grh, gid_at(route.sgid_index).value_or(GidEntry{}).gid, route.dgid, route);
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
  const Addresses found = read_grh(grh);
  attr->is_global = 1;
  attr->grh.dgid = found.source;
  attr->grh.sgid_index = static_cast<std::uint8_t>(find_gid(found.destination).value_or(0));
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

// There is no Ethernet below: the addresses are those of a loopback interface.
int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t eth_mac[6], uint16_t* vid) {
  std::memset(eth_mac, 0, 6);
  if (vid != nullptr) *vid = 0xffff;
  return 0;
}

}  // extern "C"
