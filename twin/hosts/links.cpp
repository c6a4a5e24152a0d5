#include "twin/hosts/links.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/bridge.h>
#include <netlink/route/link/veth.h>

namespace weir::hosts {
namespace {

struct Put {
  void operator()(rtnl_link* link) const { rtnl_link_put(link); }
  void operator()(rtnl_addr* address) const { rtnl_addr_put(address); }
  void operator()(nl_cache* cache) const { nl_cache_free(cache); }
  void operator()(nl_addr* address) const { nl_addr_put(address); }
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
  const std::uint32_t bytes = htonl(ipv4);
  const std::unique_ptr<nl_addr, Put> local(nl_addr_build(AF_INET, &bytes, sizeof bytes));
  const std::unique_ptr<rtnl_addr, Put> address(rtnl_addr_alloc());
  if (!local || !address) return failure_errno(ENOMEM, "an address");
  nl_addr_set_prefixlen(local.get(), static_cast<int>(prefix));
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
