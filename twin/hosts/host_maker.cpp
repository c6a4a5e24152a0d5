#include "twin/hosts/host_maker.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "twin/hosts/links.hpp"
#include "twin/hosts/user_namespace.hpp"

namespace weir::hosts {
namespace {

constexpr const char* bridge = "switch";
constexpr const char* interface = "eth0";

// A setting that this kernel may lack; the host does without it.
void set(const char* file, const std::string& value) { std::ofstream(file) << value; }

// The kernel adapts buffers, and forgets what it knew of an idle connection, by its own clock.
void fix_tcp_buffers(std::uint32_t bytes) {
  const std::string size = std::to_string(bytes);
  set("/proc/sys/net/ipv4/tcp_rmem", size + " " + size + " " + size);
  set("/proc/sys/net/ipv4/tcp_wmem", size + " " + size + " " + size);
  set("/proc/sys/net/ipv4/tcp_moderate_rcvbuf", "0");
  set("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0");
  set("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
  set("/proc/sys/net/ipv4/tcp_autocorking", "0");
}

Result<void> mount_private_files(const std::string& hosts_file) {
  // As on two machines: what one host shares between its processes, another does not see.
  if (::mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0)
    return failure_errno(errno, "cannot give a host a /dev/shm of its own");
  if (::mount(hosts_file.c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr) != 0)
    return failure_errno(errno, "cannot give a host its /etc/hosts");
  // A new /sys lists the host's interfaces; control groups stay the machine's. In some containers the kernel
  // refuses one; then it lists the container's interfaces, which no RDMA program needs.
  constexpr const char* groups = "/sys/fs/cgroup";
  const link::UniqueFd kept(
      ::open_tree(AT_FDCWD, groups, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (::mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, nullptr) == 0 && kept)
    ::move_mount(kept.get(), "", AT_FDCWD, groups, MOVE_MOUNT_F_EMPTY_PATH);
  return {};
}

}  // namespace

Result<HostMaker> HostMaker::make(const NetworkPlan& plan, std::string hosts_file) {
  HostMaker made;
  made.hosts_file_ = std::move(hosts_file);
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
    return std::unexpected(refused_namespace(errno));
  // Later mounts of the machine appear in the hosts, theirs nowhere else.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return std::unexpected(refused_namespace(errno));
  if (::mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) != 0)
    return failure(Cause::namespaces_refused,
                   std::string("the kernel refuses the hosts a /proc of their own (") + std::strerror(errno) +
                       "), as where a container's hides files; start the container with --security-opt "
                       "systempaths=unconfined (podman: unmask=ALL)");
  for (const Namespace kind : {network, mounts, hostname, ipc}) {
    auto fd = own(kind);
    if (!fd) return std::unexpected(fd.error());
    made.switch_[kind] = std::move(*fd);
  }
  set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");  // a switch's ports have no addresses
  if (const auto checked = check(plan); !checked) return std::unexpected(checked.error());
  if (plan.is_routed()) {
    auto switches = RoutingSwitches::make(plan);
    if (!switches) return std::unexpected(switches.error());
    made.switches_.emplace(std::move(*switches));
    return made;
  }
  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  if (const auto added = links->add_bridge(bridge); !added) return std::unexpected(added.error());
  if (const auto up = links->set_up(bridge, true); !up) return std::unexpected(up.error());
  return made;
}

Result<void> HostMaker::return_to_switch() const {
  for (const Namespace kind : {network, mounts, hostname, ipc})
    if (::setns(switch_[kind].get(), flag_of(kind)) != 0)
      return failure_errno(errno, "cannot return from a host's namespaces");
  return {};
}

Result<void> HostMaker::lay_cable(const NetworkPlan& plan, std::size_t index) const {
  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  if (const auto up = links->set_up("lo", true); !up) return up;
  const int other_end = switches_ ? switches_->network_at(plan, index) : switch_[network].get();
  if (const auto laid = links->add_cable(interface, port_of(index), other_end, plan.mtu_bytes); !laid)
    return laid;
  if (const auto given = links->add_address(interface, plan.hosts[index].ipv4, plan.ipv4_prefix); !given)
    return given;
  return links->set_up(interface, true);
}

Result<HostNamespaces> HostMaker::make_host(const NetworkPlan& plan, std::size_t index) {
  const HostPlan& host = plan.hosts[index];
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
    return failure_errno(errno, "cannot make the host " + host.name +
                                    "; if there are many, raise sysctl user.max_net_namespaces");
  HostNamespaces made;
  for (const Namespace kind : {network, mounts, hostname, ipc}) {
    auto fd = own(kind);
    if (!fd) return std::unexpected(fd.error());
    made[kind] = std::move(*fd);
  }
  if (::sethostname(host.name.data(), host.name.size()) != 0)
    return failure_errno(errno, "cannot give the host its name " + host.name);
  // Addresses are unique here: they need not be asked for (DAD) before they can be used.
  set("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
  set("/proc/sys/net/ipv4/ping_group_range", std::to_string(::getegid()) + " " + std::to_string(::getegid()));
  // Neighbours' addresses (fe80::) do not pass routers.
  if (plan.is_routed()) set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
  if (plan.tcp_buffer_bytes != 0) fix_tcp_buffers(plan.tcp_buffer_bytes);
  if (const auto laid = lay_cable(plan, index); !laid) return std::unexpected(laid.error());
  if (const auto mounted = mount_private_files(hosts_file_); !mounted)
    return std::unexpected(mounted.error());
  if (const auto returned = return_to_switch(); !returned) return std::unexpected(returned.error());
  if (switches_) return made;

  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  if (const auto in = links->plug_into(bridge, port_of(index)); !in) return std::unexpected(in.error());
  if (const auto up = links->set_up(port_of(index), true); !up) return std::unexpected(up.error());
  return made;
}

Result<void> HostMaker::join_switches(const NetworkPlan& plan) {
  return switches_ ? switches_->join(plan) : Result<void>{};
}

Result<void> HostMaker::count_traffic(const NetworkPlan& plan, Listing& listing) const {
  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  const auto counters = switches_ ? switches_->counters(plan) : links->counters();
  if (!counters) return std::unexpected(counters.error());
  for (std::size_t index = 0; index < listing.cables.size(); ++index) {
    const auto port = counters->find(port_of(listing.hosts.size() + index));
    if (port == counters->end()) continue;
    listing.cables[index].sent = {port->second.sent_packets, port->second.sent_bytes};
    listing.cables[index].received = {port->second.received_packets, port->second.received_bytes};
  }
  for (std::size_t index = 0; index < listing.hosts.size(); ++index) {
    const auto port = counters->find(port_of(index));
    if (port == counters->end()) continue;
    // What a port of the switch receives, its host has sent.
    listing.hosts[index].sent = {port->second.received_packets, port->second.received_bytes};
    listing.hosts[index].received = {port->second.sent_packets, port->second.sent_bytes};
  }
  return {};
}

Result<void> HostMaker::plug(const NetworkPlan& plan, std::size_t cable, const std::vector<bool>& plugged) {
  if (switches_) return switches_->plug(plan, cable, plugged);
  auto links = Links::open();
  if (!links) return std::unexpected(links.error());
  return links->set_up(port_of(cable), plugged[cable]);
}

}  // namespace weir::hosts
