#include "verbs/ibv/path.hpp"

#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "link/explain.hpp"
#include "link/udp/udp_port.hpp"
#include "rnic/memory/per_thread.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/lid.hpp"
#include "verbs/ibv/private_link.hpp"
#include "wire/roce.hpp"

namespace weir::verbs {
namespace {

// IPv6, UDP, BTH, the longest extended headers and the ICRC, as RoCE drivers subtract them.
constexpr std::uint32_t longest_overhead = 80;
// Loopback is interface 1 in each network namespace; 0 means that an address is on no interface.
constexpr std::uint32_t loopback_interface = 1;

bool is_carried(rnic::QpType type) {
  return rnic::is_reliable(type) || type == rnic::QpType::uc || type == rnic::QpType::ud;
}

}  // namespace

std::uint32_t interface_towards(const ibv_gid& destination, const GidEntry& source) {
  link::IpAddress ip;
  std::memcpy(ip.data(), destination.raw, sizeof destination.raw);
  return link::is_link_local(ip) ? source.interface_index : 0;
}

Reach reach_of(const ibv_ah_attr& to, rnic::QpType type) {
  if (!to.is_global) return Reach::same_host;
  const bool carried = is_carried(type) && is_unicast(to.grh.dgid) && !PacketNetwork::switched_off();
  if (find_gid(to.grh.dgid))
    return carried && PacketNetwork::within_this_host() ? Reach::packets : Reach::same_host;
  return carried ? Reach::packets : Reach::nowhere;
}

namespace {

constexpr std::chrono::milliseconds connect_limit{1000};

// A process of our user takes precedence in its slot. A killed one may have left its name there, so connect
// to find out; a process that does not answer in time still counts.
bool is_of_our_user(link::SameHostLink& link, rnic::Slot slot) {
  if (slot == 0 || slot >= link::max_slots || slot == link.slot() || link.connected(slot)) return true;
  const auto reached = link.connect(slot, connect_limit);
  return reached || reached.error().code != std::errc::no_such_device_or_address;
}

}  // namespace

Way way_to(NicProcess& nic, const ibv_ah_attr& destination_address, rnic::Qpn destination,
           rnic::QpType type) {
  const ibv_ah_attr to = with_grh(destination_address);
  Way way{reach_of(to, type), 0, to};
  const rnic::Slot slot = destination.slot();
  if (way.reach != Reach::same_host || !is_carried(type) || is_of_our_user(nic.link(), slot)) return way;
  way.process = nic.network().process_in(slot);
  if (way.process != 0) way.reach = Reach::another_user;
  return way;
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
  // The peer may have dialled us from an address that only a router on the way knows.
  if (nic.second_carrier() != nullptr && nic.second_carrier()->leads_to(way.destination)) return 0;
  const int error = link::UdpPort::way_to(way);
  if (error != 0 && link::first_time(said))
    link::explain("there is no way to the peer's address from GID " + std::to_string(to.grh.sgid_index) +
                  ": " + std::strerror(error) +
                  "; choose the GID of the interface that leads there (-g or -x), or add a route");
  return error;
}

std::optional<GidEntry> carrier_of_group(const ibv_gid& group, std::optional<std::size_t> index) {
  if (PacketNetwork::switched_off()) return std::nullopt;
  const bool v4 = is_ipv4(group);
  const auto carries = [v4](const GidEntry& own) {
    // Packets to a group over loopback come back, and members on this host already have them.
    return is_unicast(own.gid) && is_ipv4(own.gid) == v4 && own.interface_index > loopback_interface;
  };
  if (index) {
    const auto own = gid_at(*index);
    return own && carries(*own) ? own : std::nullopt;
  }
  const auto table = gid_table();
  const auto found = std::ranges::find_if(table, carries);
  return found != table.end() ? std::optional(*found) : std::nullopt;
}

bool open_for_group(NicProcess& nic) {
  static std::atomic_flag said;
  const auto opened = nic.network().open();
  if (!opened && link::first_time(said))
    link::explain(opened.error().what + "; multicast groups reach only programs of this user on this host");
  return opened.has_value();
}

ibv_mtu mtu_of(const GidEntry& source) {
  if (source.interface_mtu == 0) return IBV_MTU_1024;
  for (const ibv_mtu mtu : {IBV_MTU_4096, IBV_MTU_2048, IBV_MTU_1024, IBV_MTU_512})
    if (bytes_of(mtu) + longest_overhead <= source.interface_mtu) return mtu;
  return IBV_MTU_256;
}

ibv_mtu most_mtu() { return device_options().active_mtu.value_or(IBV_MTU_4096); }

ibv_mtu port_mtu() {
  if (device_options().active_mtu) return *device_options().active_mtu;
  const auto table = gid_table();
  const auto reached =
      std::ranges::find_if(table, [](const GidEntry& entry) { return is_unicast(entry.gid); });
  return reached != table.end() ? mtu_of(*reached) : IBV_MTU_4096;
}

rnic::Path path_of(const ibv_qp_attr& attr, const Way& way) {
  rnic::Path path;
  path.mtu_bytes = bytes_of(attr.path_mtu);
  path.send_psn = attr.sq_psn;
  path.receive_psn = attr.rq_psn;
  if (way.reach != Reach::packets && way.reach != Reach::another_user) return path;
  const ibv_global_route& grh = way.to.grh;
  const GidEntry source = gid_at(grh.sgid_index).value_or(GidEntry{});
  path.via = rnic::Via::packets;
  path.process = way.process;
  std::memcpy(path.source.data(), source.gid.raw, sizeof source.gid.raw);
  if (way.to.is_global)
    std::memcpy(path.destination.data(), grh.dgid.raw, sizeof grh.dgid.raw);
  else
    path.destination = path.source;
  // The port may have reported an MTU of 4096, and the program asks for that; both ends of a link use its
  // MTU. Between two users of one host there is no link, so we ignore the requested MTU, as in shared memory.
  path.mtu_bytes = way.reach == Reach::another_user ? rnic::max_datagram_bytes
                                                    : bytes_of(std::min(attr.path_mtu, mtu_of(source)));
  path.traffic_class = grh.traffic_class;
  path.hop_limit = grh.hop_limit;
  path.ecn_capable = PacketNetwork::says_ecn_capable();
  path.interface = interface_towards(grh.dgid, source);
  return path;
}

namespace {

// Why no packets leave from that address; empty: they can.
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
  std::string text = PacketNetwork::switched_off() ? "this host (shared memory)"
                                                   : "this host (shared memory; other users by packets)";
  if (const std::string why = why_no_packets(own); !why.empty()) return text + "; no other host, as " + why;
  if (PacketNetwork::within_this_host()) text = "this host (packets, as WEIR_PACKETS is 1)";
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
  struct Text {
    std::string text;
  };
  std::string& text = weir::rnic::per_thread<Text>().text;
  const auto index = find_gid(*own);
  text = reach_text((index ? gid_at(*index) : std::nullopt).value_or(GidEntry{*own, 0, 0}));
  return text.c_str();
}
