#include "nccl/nic.hpp"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

namespace weir::nccl {
namespace {

using rdma::Errc;
using rdma::Result;

struct Candidate {
  std::string interface;
  rdma::Endpoint address;
  bool loopback;
};

bool wanted(const std::string& interfaces, std::string_view name) {
  if (interfaces.empty()) return true;
  return ("," + interfaces + ",").find("," + std::string(name) + ",") != std::string::npos;
}

// The host's usable addresses: IPv4 first, loopback last.
std::vector<Candidate> addresses(const std::string& interfaces) {
  std::vector<Candidate> found;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return found;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0 || !wanted(interfaces, each->ifa_name))
      continue;
    rdma::Endpoint address;
    if (each->ifa_addr->sa_family == AF_INET)
      std::memcpy(address.data(), each->ifa_addr, sizeof(sockaddr_in));
    else if (each->ifa_addr->sa_family == AF_INET6)
      std::memcpy(address.data(), each->ifa_addr, sizeof(sockaddr_in6));
    else
      continue;
    address.port(0);
    if (address.address().is_v6() && address.address().to_v6().is_link_local()) continue;
    found.push_back({each->ifa_name, address, (each->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(list);
  std::ranges::stable_sort(found, {}, [](const Candidate& candidate) {
    return std::pair(candidate.loopback, candidate.address.address().is_v6());
  });
  return found;
}

// From PortInfo's codes (IBA 14.2.5.6): the Mbit/s of one lane, times the number of lanes.
int speed_mbps(const ibv_port_attr& port) {
  static constexpr std::pair<int, int> lanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  static constexpr std::pair<int, int> speeds[] = {{1, 2500},   {2, 5000},   {4, 10000},  {8, 10000},
                                                   {16, 14000}, {32, 25000}, {64, 50000}, {128, 100000}};
  const auto of = [](auto& table, int code, int otherwise) {
    for (const auto& [known, value] : table)
      if (known == code) return value;
    return otherwise;
  };
  return of(lanes, port.active_width, 1) * of(speeds, port.active_speed, 10000);
}

std::optional<FoundDevice> ask(const rdma::CmId& id, const rdma::Endpoint& address) {
  ibv_device_attr device{};
  ibv_port_attr port{};
  if (ibv_query_device(id->verbs, &device) != 0 || ibv_query_port(id->verbs, id->port_num, &port) != 0)
    return std::nullopt;
  if (port.state != IBV_PORT_ACTIVE) return std::nullopt;
  FoundDevice found;
  found.name = ibv_get_device_name(id->verbs->device);
  found.address = address;
  found.guid = device.sys_image_guid != 0 ? device.sys_image_guid : device.node_guid;
  found.port = id->port_num;
  found.speed_mbps = speed_mbps(port);
  found.max_message_bytes = port.max_msg_sz;
  return found;
}

}  // namespace

Result<std::vector<FoundDevice>> find_devices(const Settings& settings, bool software) {
  Result<rdma::EventChannel> events = rdma::EventChannel::create();
  if (!events) return std::unexpected(events.error());
  std::vector<FoundDevice> devices;
  std::set<std::pair<std::string, int>> seen;
  for (const Candidate& candidate : addresses(settings.interfaces)) {
    Result<rdma::CmId> id = rdma::CmId::create(*events);
    if (!id) return std::unexpected(id.error());
    if (!id->bind(candidate.address) || (*id)->verbs == nullptr) continue;
    std::optional<FoundDevice> found = ask(*id, candidate.address);
    if (!found || !seen.emplace(found->name, found->port).second) continue;
    found->software = software;
    devices.push_back(std::move(*found));
  }
  std::ranges::sort(devices, {},
                    [](const FoundDevice& device) { return std::pair(device.name, device.port); });
  if (!devices.empty()) return devices;
  return rdma::fail(Errc::no_device,
                    "no address of this host belongs to an RDMA device with an active port" +
                        (settings.interfaces.empty()
                             ? std::string("; give its network interface an address")
                             : " (WEIR_NCCL_INTERFACES=" + settings.interfaces + "); name other interfaces"));
}

Nic::Nic(FoundDevice device, rdma::EventChannel events, rdma::CmId anchor, rdma::ProtectionDomain pd,
         rdma::CompletionChannel channel)
    : device_(std::move(device)),
      events_(std::move(events)),
      anchor_(std::move(anchor)),
      pd_(std::move(pd)),
      channel_(std::move(channel)) {}

Result<std::shared_ptr<Nic>> Nic::open(const FoundDevice& device) {
  Result<rdma::EventChannel> events = rdma::EventChannel::create();
  if (!events) return std::unexpected(events.error());
  Result<rdma::CmId> anchor = rdma::CmId::create(*events);
  if (!anchor) return std::unexpected(anchor.error());
  if (Result<void> bound = anchor->bind(device.address); !bound) return std::unexpected(bound.error());
  if ((*anchor)->verbs == nullptr)
    return rdma::fail(Errc::no_device, "no RDMA device has the address " + rdma::text(device.address) +
                                           " any more; start the program again");
  Result<rdma::ProtectionDomain> pd = rdma::ProtectionDomain::allocate((*anchor)->verbs);
  if (!pd) return std::unexpected(pd.error());
  Result<rdma::CompletionChannel> channel = rdma::CompletionChannel::create((*anchor)->verbs);
  if (!channel) return std::unexpected(channel.error());
  return std::shared_ptr<Nic>(
      new Nic(device, std::move(*events), std::move(*anchor), std::move(*pd), std::move(*channel)));
}

Result<Region*> Nic::enroll(void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard lock(mutex_);
  // A registration that covers the range begins at or before it. NCCL registers a buffer once and then pieces
  // of it, so checking the nearest few suffices; checking all would take time in proportion to their number.
  constexpr int nearest = 8;
  auto at = regions_.upper_bound(begin);
  for (int tries = 0; tries < nearest && at != regions_.begin(); ++tries) {
    --at;
    if (!at->second->covers(data, bytes)) continue;
    ++at->second->holders;
    return at->second.get();
  }
  Result<rdma::MemoryRegion> region = rdma::MemoryRegion::enroll(
      pd_, std::span(static_cast<std::byte*>(data), bytes), rdma::Access::remote_write);
  if (!region) return std::unexpected(region.error());
  auto made = std::make_unique<Region>(Region{shared_from_this(), begin, begin + bytes, std::move(*region)});
  return regions_.emplace(begin, std::move(made))->second.get();
}

void Nic::release(Region* region) {
  const std::shared_ptr<Nic> nic = region->nic;  // the region may hold the last reference
  std::unique_ptr<Region> ended;                 // destroyed outside the lock: deregistering may be slow
  const std::lock_guard lock(nic->mutex_);
  if (--region->holders > 0) return;
  const auto [first, last] = nic->regions_.equal_range(region->begin);
  for (auto at = first; at != last; ++at) {
    if (at->second.get() != region) continue;
    ended = std::move(at->second);
    nic->regions_.erase(at);
    return;
  }
}

std::size_t Nic::regions() const {
  const std::lock_guard lock(mutex_);
  return regions_.size();
}

}  // namespace weir::nccl
