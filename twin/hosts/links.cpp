#include "twin/hosts/links.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/bridge.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/route.h>

namespace weir::hosts {
namespace {

struct Put {
  void operator()(rtnl_link* link) const { rtnl_link_put(link); }
  void operator()(rtnl_addr* address) const { rtnl_addr_put(address); }
  void operator()(nl_cache* cache) const { nl_cache_free(cache); }
  void operator()(nl_addr* address) const { nl_addr_put(address); }
  void operator()(rtnl_route* route) const { rtnl_route_put(route); }
};
using Link = std::unique_ptr<rtnl_link, Put>;

Result<void> done(int status, const std::string& what) {
  if (status >= 0) return {};
  return failure(Cause::system, what + ": " + nl_geterror(status));
}

Result<Link> named(nl_sock* socket, const std::string& name) {
  rtnl_link* link = nullptr;
  if (const auto found = done(rtnl_link_get_kernel(socket, 0, name.c_str(), &link), "interface " + name);
      !found)
    return std::unexpected(found.error());
  return Link(link);
}

std::unique_ptr<nl_addr, Put> address_of(std::uint32_t ipv4, int prefix) {
  const std::uint32_t bytes = htonl(ipv4);
  std::unique_ptr<nl_addr, Put> address(nl_addr_build(AF_INET, &bytes, sizeof bytes));
  if (address) nl_addr_set_prefixlen(address.get(), prefix);
  return address;
}

std::unique_ptr<rtnl_route, Put> route_to(std::uint32_t ipv4) {
  std::unique_ptr<rtnl_route, Put> route(rtnl_route_alloc());
  const auto to = address_of(ipv4, 32);
  if (!route || !to) return nullptr;
  rtnl_route_set_family(route.get(), AF_INET);
  rtnl_route_set_dst(route.get(), to.get());
  return route;
}

}  // namespace

void Links::Closer::operator()(nl_sock* socket) const { nl_socket_free(socket); }

Result<Links> Links::open() {
  nl_sock* const socket = nl_socket_alloc();
  if (socket == nullptr) return failure_errno(ENOMEM, "a netlink socket");
  Links links(socket);
  const auto connected = done(nl_connect(socket, NETLINK_ROUTE), "a netlink socket");
  if (!connected) return std::unexpected(connected.error());
  return links;
}

Result<void> Links::add_bridge(const std::string& name) {
  return done(rtnl_link_bridge_add(socket_.get(), name.c_str()), "cannot make the bridge " + name);
}

Result<void> Links::add_cable(const std::string& name, const std::string& peer, int peer_namespace,
                              unsigned mtu_bytes) {
  const Link link(rtnl_link_veth_alloc());
  if (!link) return failure_errno(ENOMEM, "interface " + name);
  rtnl_link* const other = rtnl_link_veth_get_peer(link.get());
  rtnl_link_set_name(link.get(), name.c_str());
  rtnl_link_set_mtu(link.get(), mtu_bytes);
  rtnl_link_set_name(other, peer.c_str());
  rtnl_link_set_mtu(other, mtu_bytes);
  rtnl_link_set_ns_fd(other, peer_namespace);
  const int status = rtnl_link_add(socket_.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL);
  rtnl_link_put(other);
  return done(status, "cannot make the virtual cable " + name + "-" + peer);
}

Result<void> Links::add_cable_between(const std::string& name, int one_namespace, int other_namespace,
                                      unsigned mtu_bytes) {
  const Link link(rtnl_link_veth_alloc());
  if (!link) return failure_errno(ENOMEM, "interface " + name);
  rtnl_link* const other = rtnl_link_veth_get_peer(link.get());
  for (const auto& [end, at] : {std::pair{link.get(), one_namespace}, {other, other_namespace}}) {
    rtnl_link_set_name(end, name.c_str());
    rtnl_link_set_mtu(end, mtu_bytes);
    rtnl_link_set_ns_fd(end, at);
  }
  const int status = rtnl_link_add(socket_.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL);
  rtnl_link_put(other);
  return done(status, "cannot make the virtual cable " + name);
}

Result<void> Links::set_route(std::uint32_t ipv4, const std::vector<Way>& ways) {
  const auto route = route_to(ipv4);
  if (!route) return failure_errno(ENOMEM, "a route");
  for (const Way& way : ways) {
    rtnl_nexthop* const next = rtnl_route_nh_alloc();
    if (next == nullptr) return failure_errno(ENOMEM, "a route");
    rtnl_route_nh_set_ifindex(next, static_cast<int>(::if_nametoindex(way.interface.c_str())));
    rtnl_route_add_nexthop(route.get(), next);  // which now owns it
    if (way.neighbour_ipv4 == 0) continue;
    const auto gateway = address_of(way.neighbour_ipv4, 32);
    if (!gateway) return failure_errno(ENOMEM, "a route");
    rtnl_route_nh_set_gateway(next, gateway.get());
    rtnl_route_nh_set_flags(next, RTNH_F_ONLINK);
  }
  rtnl_route_set_scope(route.get(), ways.front().neighbour_ipv4 == 0 ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE);
  return done(rtnl_route_add(socket_.get(), route.get(), NLM_F_CREATE | NLM_F_REPLACE),
              "cannot route packets by " + ways.front().interface);
}

Result<void> Links::remove_route(std::uint32_t ipv4) {
  const auto route = route_to(ipv4);
  if (!route) return failure_errno(ENOMEM, "a route");
  rtnl_route_set_scope(route.get(), RT_SCOPE_NOWHERE);  // of whatever scope
  const int status = rtnl_route_delete(socket_.get(), route.get(), 0);
  return status == -NLE_OBJ_NOTFOUND ? Result<void>{} : done(status, "cannot remove a route");
}

Result<void> Links::plug_into(const std::string& bridge, const std::string& name) {
  const auto to = named(socket_.get(), bridge);
  if (!to) return std::unexpected(to.error());
  const auto link = named(socket_.get(), name);
  if (!link) return std::unexpected(link.error());
  const Link change(rtnl_link_alloc());
  if (!change) return failure_errno(ENOMEM, "interface " + name);
  rtnl_link_set_master(change.get(), rtnl_link_get_ifindex(to->get()));
  return done(rtnl_link_change(socket_.get(), link->get(), change.get(), 0),
              "cannot plug " + name + " into " + bridge);
}

Result<void> Links::add_address(const std::string& name, std::uint32_t ipv4, unsigned prefix) {
  const auto link = named(socket_.get(), name);
  if (!link) return std::unexpected(link.error());
  const auto local = address_of(ipv4, static_cast<int>(prefix));
  const std::unique_ptr<rtnl_addr, Put> address(rtnl_addr_alloc());
  if (!local || !address) return failure_errno(ENOMEM, "an address");
  rtnl_addr_set_ifindex(address.get(), rtnl_link_get_ifindex(link->get()));
  rtnl_addr_set_local(address.get(), local.get());
  return done(rtnl_addr_add(socket_.get(), address.get(), 0), "cannot give " + name + " its address");
}

Result<std::map<std::string, Links::Counters>> Links::counters() {
  nl_cache* all = nullptr;
  const auto read =
      done(rtnl_link_alloc_cache(socket_.get(), AF_UNSPEC, &all), "cannot read the switch's counters");
  if (!read) return std::unexpected(read.error());
  const std::unique_ptr<nl_cache, Put> owner(all);
  std::map<std::string, Counters> found;
  for (nl_object* object = nl_cache_get_first(all); object != nullptr; object = nl_cache_get_next(object)) {
    auto* const link = reinterpret_cast<rtnl_link*>(object);
    found[rtnl_link_get_name(link)] = {
        rtnl_link_get_stat(link, RTNL_LINK_RX_PACKETS), rtnl_link_get_stat(link, RTNL_LINK_RX_BYTES),
        rtnl_link_get_stat(link, RTNL_LINK_TX_PACKETS), rtnl_link_get_stat(link, RTNL_LINK_TX_BYTES)};
  }
  return found;
}

Result<void> Links::set_up(const std::string& name, bool up) {
  const auto link = named(socket_.get(), name);
  if (!link) return std::unexpected(link.error());
  const Link change(rtnl_link_alloc());
  if (!change) return failure_errno(ENOMEM, "interface " + name);
  if (up)
    rtnl_link_set_flags(change.get(), IFF_UP);
  else
    rtnl_link_unset_flags(change.get(), IFF_UP);
  return done(rtnl_link_change(socket_.get(), link->get(), change.get(), 0),
              "cannot take " + name + (up ? " up" : " down"));
}

}  // namespace weir::hosts
