#include "verbs/trace/routes.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "verbs/ibv/gid_table.hpp"

namespace weir::verbs {
namespace {

constexpr std::uint8_t usual_hops = 64;

// A locally administered address that belongs to nobody.
constexpr wire::Mac any_mac = {0x02, 'W', 'e', 'i', 'r', 0};

// One port for all packets of a queue pair, so that switches can spread flows by it (annex A17.4.5.2).
std::uint16_t source_port(rnic::Qpn own) {
  return static_cast<std::uint16_t>(0xc000 | (own.value() & 0x3fff));
}

bool is_mapped_ipv4(const ibv_gid& gid) {
  constexpr std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, prefix, sizeof prefix) == 0;
}

wire::Route route_between(const ibv_gid& source, const ibv_gid& destination, const ibv_global_route& grh,
                          rnic::Qpn own) {
  wire::Route route{any_mac, any_mac, {}, source_port(own)};
  route.destination[5] = 1;
  const std::uint8_t hops = grh.hop_limit != 0 ? grh.hop_limit : usual_hops;
  if (is_mapped_ipv4(source) && is_mapped_ipv4(destination)) {
    wire::Ipv4 ip{.source = {}, .destination = {}, .tos = grh.traffic_class, .ttl = hops};
    std::copy_n(source.raw + 12, 4, ip.source.begin());
    std::copy_n(destination.raw + 12, 4, ip.destination.begin());
    route.ip = ip;
    return route;
  }
  wire::Ipv6 ip{.source = {},
                .destination = {},
                .traffic_class = grh.traffic_class,
                .hop_limit = hops,
                .flow_label = grh.flow_label & 0xfffff};
  std::copy_n(source.raw, 16, ip.source.begin());
  std::copy_n(destination.raw, 16, ip.destination.begin());
  route.ip = ip;
  return route;
}

ibv_gid loopback() {
  ibv_gid gid{};
  constexpr std::uint8_t end[6] = {0xff, 0xff, 127, 0, 0, 1};
  std::copy_n(end, 6, gid.raw + 10);
  return gid;
}

}  // namespace

std::uint32_t mtu_bytes(ibv_mtu mtu) {
  constexpr std::uint32_t usual = 1024;
  return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << static_cast<unsigned>(mtu) : usual;
}

wire::Route route_of(const ibv_ah_attr& to, rnic::Qpn own) {
  const auto table = gid_table();
  if (to.is_global == 0 || to.grh.sgid_index >= table.size())
    return route_between(loopback(), loopback(), to.grh, own);
  return route_between(table[to.grh.sgid_index].gid, to.grh.dgid, to.grh, own);
}

wire::Route route_of(const std::byte* grh, rnic::Qpn own) {
  ibv_global_route fields{};
  if (grh == nullptr) return route_between(loopback(), loopback(), fields, own);
  constexpr std::size_t ipv4_at = 20;
  ibv_gid source{}, destination{};
  if (std::to_integer<unsigned>(grh[0]) >> 4 == 6) {
    fields.hop_limit = std::to_integer<std::uint8_t>(grh[7]);
    std::memcpy(source.raw, grh + 8, 16);
    std::memcpy(destination.raw, grh + 24, 16);
  } else {
    source = destination = loopback();
    fields.traffic_class = std::to_integer<std::uint8_t>(grh[ipv4_at + 1]);
    fields.hop_limit = std::to_integer<std::uint8_t>(grh[ipv4_at + 8]);
    std::memcpy(source.raw + 12, grh + ipv4_at + 12, 4);
    std::memcpy(destination.raw + 12, grh + ipv4_at + 16, 4);
  }
  return route_between(source, destination, fields, own);
}

wire::Route route_of(const rnic::WirePacket& packet) {
  ibv_gid source, destination;
  std::memcpy(source.raw, packet.source.data(), sizeof source.raw);
  std::memcpy(destination.raw, packet.destination.data(), sizeof destination.raw);
  ibv_global_route fields{};
  fields.hop_limit = packet.hop_limit;
  fields.traffic_class = packet.traffic_class;
  wire::Route route = route_between(source, destination, fields, packet.own);
  route.source_port = packet.source_port;
  constexpr std::size_t shortest = 16;  // BTH and ICRC
  if (packet.bytes.size() < shortest) return route;
  const wire::IcrcRoute icrc({.source = packet.source,
                              .destination = packet.destination,
                              .source_port = packet.source_port,
                              .destination_port = wire::roce_port});
  if (auto* const ip = std::get_if<wire::Ipv4>(&route.ip))
    ip->id = icrc.check(packet.bytes, packet.likely_id).value_or(packet.likely_id);
  return route;
}

wire::Route reversed(const wire::Route& route) {
  wire::Route back = route;
  std::swap(back.source, back.destination);
  std::visit([](auto& ip) { std::swap(ip.source, ip.destination); }, back.ip);
  return back;
}

}  // namespace weir::verbs
