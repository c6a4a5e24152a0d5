#include "verbs/ibv/path.hpp"

#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "link/explain.hpp"
#include "link/udp/udp_port.hpp"
#include "verbs/ibv/private_link.hpp"
#include "verbs/ibv/shape.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {
namespace {

// IPv6, UDP, BTH, the longest extended headers and the ICRC: what drivers of RoCE ports subtract.
constexpr std::uint32_t longest_overhead = 80;

}  // namespace

bool is_unicast(const ibv_gid& gid) {
  in6_addr v6;
  std::memcpy(&v6, gid.raw, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return gid.raw[12] != 0 && gid.raw[12] < 224 && gid.raw[12] != 127;
  return !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_MULTICAST(&v6);
}

std::uint32_t interface_towards(const ibv_gid& destination, const GidEntry& source) {
  link::IpAddress ip;
  std::memcpy(ip.data(), destination.raw, sizeof destination.raw);
  return link::is_link_local(ip) ? source.interface_index : 0;
}

Reach reach_of(const ibv_ah_attr& to, rnic::QpType type) {
  if (!to.is_global || find_gid(to.grh.dgid)) return Reach::same_host;
  const bool of_a_kind = type == rnic::QpType::rc || type == rnic::QpType::uc || type == rnic::QpType::ud;
  const bool carried = of_a_kind && is_unicast(to.grh.dgid) && !PacketNetwork::switched_off();
  return carried ? Reach::packets : Reach::nowhere;
}

int open_way(NicProcess& nic, const ibv_ah_attr& to) {
  static std::atomic_flag said;
  if (const auto opened = nic.network().open(); !opened) {
    if (link::first_time(said)) link::explain(opened.error().what);
    return static_cast<int>(opened.error().code);
  }
  const GidEntry source = gid_at(to.grh.sgid_index).value_or(GidEntry{});
  link::UdpRoute way;
  std::memcpy(way.source.data(), source.gid.raw, sizeof source.gid.raw);
  std::memcpy(way.destination.data(), to.grh.dgid.raw, sizeof to.grh.dgid.raw);
  way.interface = interface_towards(to.grh.dgid, source);
  const int error = link::UdpPort::way_to(way);
  if (error != 0 && link::first_time(said))
    link::explain("there is no way to the peer's address from GID " + std::to_string(to.grh.sgid_index) +
                  ": " + std::strerror(error) +
                  "; choose the GID of the interface that leads there (-g or -x), or add a route");
  return error;
}

ibv_mtu mtu_of(const GidEntry& source) {
  if (source.interface_mtu == 0) return IBV_MTU_1024;
  for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_2048, IBV_MTU_1024, IBV_MTU_512})
    if (bytes_of(mtu) + longest_overhead <= source.interface_mtu) return mtu;
  return IBV_MTU_256;
}

ibv_mtu most_mtu() { return shape().active_mtu.value_or(IBV_MTU_4096); }

ibv_mtu port_mtu() {
  if (shape().active_mtu) return *shape().active_mtu;
  const auto table = gid_table();
  const auto reached =
      std::ranges::find_if(table, [](const GidEntry& entry) { return is_unicast(entry.gid); });
  return reached != table.end() ? mtu_of(*reached) : IBV_MTU_4096;
}

rnic::Path path_of(const ibv_qp_attr& attr, Reach reach) {
  rnic::Path path;
  if (reach != Reach::packets) return path;
  const ibv_global_route& grh = attr.ah_attr.grh;
  const GidEntry source = gid_at(grh.sgid_index).value_or(GidEntry{});
  path.via = rnic::Via::packets;
  std::memcpy(path.source.data(), source.gid.raw, sizeof source.gid.raw);
  std::memcpy(path.destination.data(), grh.dgid.raw, sizeof grh.dgid.raw);
  // A program that was told of 4096 by the port asks for it; both ends of a link have its MTU.
  path.mtu_bytes = bytes_of(std::min(attr.path_mtu, mtu_of(source)));
  path.send_psn = attr.sq_psn;
  path.receive_psn = attr.rq_psn;
  path.traffic_class = grh.traffic_class;
  path.hop_limit = grh.hop_limit;
  path.interface = interface_towards(grh.dgid, source);
  return path;
}

namespace {

// Why no packets leave from that address; empty: they do.
std::string why_no_packets(const GidEntry& own) {
  if (!is_unicast(own.gid)) return "it is a loopback address";
  if (PacketNetwork::switched_off()) return "packets are switched off (WEIR_WIRE=0)";
  link::UdpRoute itself;
  std::memcpy(itself.source.data(), own.gid.raw, sizeof own.gid.raw);
  itself.destination = itself.source;
  itself.interface = interface_towards(own.gid, own);
  if (link::UdpPort::way_to(itself) == EADDRNOTAVAIL) return "no interface has this address";
  if (const auto user = link::UdpPort::other_user_of(wire::roce_port))
    return "user " + std::to_string(*user) + " has UDP port " + std::to_string(wire::roce_port) +
           ", which the programs of one user share";
  return "";
}

std::string reach_text(const GidEntry& own) {
  std::string text = "this host (shared memory)";
  if (const std::string why = why_no_packets(own); !why.empty()) return text + "; no other host, as " + why;
  std::array<char, IF_NAMESIZE> name{};
  const bool named = ::if_indextoname(own.interface_index, name.data()) != nullptr;
  text += ", other hosts (packets of " + std::to_string(bytes_of(mtu_of(own))) + " bytes";
  if (named && own.interface_mtu != 0)
    text += std::string(", as ") + name.data() + " has an MTU of " + std::to_string(own.interface_mtu);
  return text + ")";
}

}  // namespace
}  // namespace weir::verbs

using namespace weir::verbs;

extern "C" const char* weir_reaches(const ibv_gid* own) {
  thread_local std::string text;
  const auto index = find_gid(*own);
  text = reach_text((index ? gid_at(*index) : std::nullopt).value_or(GidEntry{*own, 0, 0}));
  return text.c_str();
}
