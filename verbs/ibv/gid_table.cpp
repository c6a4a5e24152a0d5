#include "verbs/ibv/gid_table.hpp"

#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>

#include "link/not_cancelled.hpp"
#include "link/unique_fd.hpp"
#include "verbs/ibv/device_options.hpp"
#include "verbs/ibv/private_link.hpp"

namespace weir::verbs {
namespace {

// RoCE v2: an IPv6 address is its own GID, an IPv4 address is the mapped form ::ffff:a.b.c.d (Annex A17.4.5).
ibv_gid gid_of(const in_addr& v4) {
  ibv_gid gid{};
  gid.raw[10] = gid.raw[11] = 0xff;
  std::memcpy(gid.raw + 12, &v4, 4);
  return gid;
}

std::optional<ibv_gid> gid_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) return gid_of(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  if (address->sa_family != AF_INET6) return std::nullopt;
  ibv_gid gid{};
  std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 16);
  return gid;
}

bool is_loopback(const ibv_gid& gid) {
  in6_addr v6;
  std::memcpy(&v6, gid.raw, sizeof v6);
  return is_ipv4(gid) ? gid.raw[12] == 127 : IN6_IS_ADDR_LOOPBACK(&v6) != 0;
}

// Programs that name no index use index 0, so the address that others most likely know comes first. 127.0.0.1
// and ::1 are last.
int rank(const ifaddrs& a) {
  const int family = a.ifa_addr->sa_family == AF_INET6 ? 1 : 0;
  if (is_loopback(*gid_of(a.ifa_addr))) return 4 + family;
  return ((a.ifa_flags & IFF_LOOPBACK) != 0 ? 2 : 0) + family;
}

std::uint32_t mtu_of(const link::UniqueFd& socket, const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  if (!socket || ::ioctl(socket.get(), SIOCGIFMTU, &request) != 0) return 0;
  return static_cast<std::uint32_t>(std::max(request.ifr_mtu, 0));
}

std::vector<GidEntry> read_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) list = nullptr;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, ::freeifaddrs);
  std::vector<const ifaddrs*> usable;
  for (const ifaddrs* a = list; a != nullptr; a = a->ifa_next)
    if ((a->ifa_flags & IFF_UP) && gid_of(a->ifa_addr)) usable.push_back(a);
  std::stable_sort(usable.begin(), usable.end(),
                   [](const ifaddrs* a, const ifaddrs* b) { return rank(*a) < rank(*b); });
  std::vector<GidEntry> table;
  const link::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  for (const ifaddrs* a : usable)
    table.push_back({*gid_of(a->ifa_addr), ::if_nametoindex(a->ifa_name), mtu_of(socket, a->ifa_name),
                     (a->ifa_flags & IFF_RUNNING) != 0 ? GidEntry::Cable::in : GidEntry::Cable::unknown});
  // If loopback is down in a network namespace, its processes still want to talk to each other.
  if (table.empty()) table.push_back({gid_of(in_addr{htonl(INADDR_LOOPBACK)}), 1, 0});
  return table;
}

// Those that a table without them begins to list.
std::vector<GidEntry> worth_listing(std::vector<GidEntry> addresses) {
  const auto loopback = [](const GidEntry& entry) { return is_loopback(entry.gid); };
  if (!std::ranges::all_of(addresses, loopback)) std::erase_if(addresses, loopback);
  return addresses;
}

// The addresses of `weir run --gid`. Those that the host lacks are placed on its first interface.
std::vector<GidEntry> configured_addresses() {
  const std::vector<GidEntry> own = read_addresses();
  std::vector<GidEntry> table;
  for (const ibv_gid& gid : device_options().gids) {
    const auto same = [&](const GidEntry& e) { return std::memcmp(e.gid.raw, gid.raw, sizeof gid.raw) == 0; };
    const auto found = std::find_if(own.begin(), own.end(), same);
    const GidEntry& on = found != own.end() ? *found : own.front();
    table.push_back({gid, on.interface_index, on.interface_mtu});
  }
  return table;
}

bool is_empty(const ibv_gid& gid) {
  static constexpr ibv_gid nothing{};
  return std::memcmp(gid.raw, nothing.raw, sizeof gid.raw) == 0;
}
bool same(const ibv_gid& a, const ibv_gid& b) { return std::memcmp(a.raw, b.raw, sizeof a.raw) == 0; }

struct Table {
  std::mutex mutex;
  std::vector<GidEntry> entries;
  std::size_t places = 0;  // fixed at the first read
  int watch = -1;          // a netlink socket
  pid_t watcher = 0;       // owner of `watch`; a forked child must not read its parent's messages
  void (*changed)(TableChange) = nullptr;
};

// Never destroyed: threads of the application may still look while the process exits.
Table& table() {
  static auto* const the_table = [] {
    constexpr std::size_t usual = 16, spare = 8;
    const link::NotCancelled whole;
    auto* made = new Table;
    made->entries = device_options().gids.empty() ? worth_listing(read_addresses()) : configured_addresses();
    made->places = device_options().gids.empty() ? std::max(usual, made->entries.size() + spare)
                                                 : std::max(usual, made->entries.size());
    return made;
  }();
  return *the_table;
}

// Whether the kernel has announced a change since the last call. The messages are not parsed, because we read
// all addresses anew; so a message that was lost for lack of room (ENOBUFS) counts as a change.
bool address_changed(int socket) {
  std::array<char, 8192> message;
  bool any = false;
  for (;;) {
    const ssize_t got = ::recv(socket, message.data(), message.size(), MSG_DONTWAIT);
    if (got < 0 && errno != ENOBUFS && errno != EINTR) return any;
    if (got == 0) return any;
    any |= got > 0 || errno == ENOBUFS;
  }
}

// nullptr: none is hidden.
std::atomic<bool (*)(std::size_t)> hides{nullptr};
bool is_hidden(std::size_t index) {
  const auto is_gone = hides.load(std::memory_order_acquire);
  return is_gone != nullptr && is_gone(index);
}

struct Changed {
  bool gids = false, interfaces = false;
};
Changed merge(std::vector<GidEntry>& entries, std::size_t places, const std::vector<GidEntry>& fresh) {
  const auto has = [](const std::vector<GidEntry>& list, const ibv_gid& gid) {
    return std::ranges::any_of(list, [&](const GidEntry& entry) { return same(entry.gid, gid); });
  };
  Changed changed;
  for (GidEntry& entry : entries) {
    if (is_empty(entry.gid)) continue;
    const auto now =
        std::ranges::find_if(fresh, [&](const GidEntry& each) { return same(each.gid, entry.gid); });
    if (now == fresh.end()) {
      entry = {};
      changed.gids = true;
    } else {
      GidEntry renewed = *now;
      if (renewed.cable == GidEntry::Cable::unknown && entry.cable != GidEntry::Cable::unknown)
        renewed.cable = GidEntry::Cable::pulled;
      changed.interfaces |= renewed.interface_mtu != entry.interface_mtu || renewed.cable != entry.cable ||
                            renewed.interface_index != entry.interface_index;
      entry = renewed;
    }
  }
  for (const GidEntry& entry : worth_listing(fresh)) {
    if (has(entries, entry.gid)) continue;
    const auto empty = std::ranges::find_if(entries, [](const GidEntry& e) { return is_empty(e.gid); });
    if (empty != entries.end())
      *empty = entry;
    else if (entries.size() < places)
      entries.push_back(entry);
    else
      continue;  // no place is left
    changed.gids = true;
  }
  return changed;
}

}  // namespace

void read_changed_addresses() {
  Table& known = table();
  void (*tell)(TableChange) = nullptr;
  Changed changed;
  {
    const link::NotCancelled whole;
    const std::lock_guard lock(known.mutex);
    if (known.watch < 0 || known.watcher != ::getpid() || !address_changed(known.watch)) return;
    changed = merge(known.entries, known.places, read_addresses());
    tell = known.changed;
  }
  if (tell == nullptr) return;
  if (changed.gids) tell(TableChange::gids);
  if (changed.gids || changed.interfaces) tell(TableChange::interfaces);
}

bool is_ipv4(const ibv_gid& gid) {
  in6_addr v6;
  std::memcpy(&v6, gid.raw, sizeof v6);
  return IN6_IS_ADDR_V4MAPPED(&v6);
}

bool is_unicast(const ibv_gid& gid) {
  if (is_ipv4(gid)) return gid.raw[12] != 0 && gid.raw[12] < 224 && gid.raw[12] != 127;
  in6_addr v6;
  std::memcpy(&v6, gid.raw, sizeof v6);
  return !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_MULTICAST(&v6);
}

int watch_addresses(void (*changed)(TableChange)) {
  if (!device_options().gids.empty()) return -1;
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  if (known.watch >= 0 && known.watcher == ::getpid()) return known.watch;
  // Do not close the parent's socket: in a forked child its number may by now be another file.
  known.watch = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  known.watcher = ::getpid();
  known.changed = changed;
  sockaddr_nl groups{};
  groups.nl_family = AF_NETLINK;
  groups.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
  if (known.watch >= 0 &&
      ::bind(known.watch, reinterpret_cast<const sockaddr*>(&groups), sizeof groups) != 0) {
    ::close(known.watch);
    known.watch = -1;
  }
  // No message announced a change made between the first read and the subscription.
  if (known.watch >= 0) merge(known.entries, known.places, read_addresses());
  return known.watch;
}

std::size_t gid_places() { return table().places; }

namespace {

std::vector<GidEntry> all_entries() {
  read_changed_addresses();
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  return known.entries;
}

}  // namespace

bool cable_is_pulled() {
  const auto entries = all_entries();
  const auto first =
      std::ranges::find_if(entries, [](const GidEntry& entry) { return is_unicast(entry.gid); });
  return first != entries.end() && first->cable == GidEntry::Cable::pulled;
}

void hide_gids(bool (*is_gone)(std::size_t index)) { hides.store(is_gone, std::memory_order_release); }

std::optional<std::size_t> find_place(const ibv_gid& gid) {
  const auto entries = all_entries();
  const auto found = std::ranges::find_if(entries, [&](const GidEntry& e) { return same(e.gid, gid); });
  if (found == entries.end()) return std::nullopt;
  return static_cast<std::size_t>(found - entries.begin());
}

std::vector<GidEntry> gid_table() {
  auto entries = all_entries();
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (is_hidden(i)) entries[i] = {};
  return entries;
}

std::optional<GidEntry> gid_at(std::size_t index) {
  if (is_hidden(index)) return std::nullopt;
  read_changed_addresses();
  Table& known = table();
  const std::lock_guard lock(known.mutex);
  if (index >= known.entries.size() || is_empty(known.entries[index].gid)) return std::nullopt;
  return known.entries[index];
}

std::optional<std::size_t> find_gid(const ibv_gid& gid) {
  const bool loopback = is_loopback(gid), v4 = is_ipv4(gid);
  const ibv_gid wanted = loopback && v4 ? gid_of(in_addr{htonl(INADDR_LOOPBACK)}) : gid;
  const auto entries = gid_table();
  const auto place = [&](auto holds) -> std::optional<std::size_t> {
    const auto found =
        std::ranges::find_if(entries, [&](const GidEntry& e) { return !is_empty(e.gid) && holds(e.gid); });
    if (found == entries.end()) return std::nullopt;
    return static_cast<std::size_t>(found - entries.begin());
  };
  if (const auto found = place([&](const ibv_gid& own) { return same(own, wanted); }); found || !loopback)
    return found;
  // The table lacks loopback, which is still this host: the first address of its kind, or of any.
  const auto of_its_kind = place([&](const ibv_gid& own) { return is_ipv4(own) == v4; });
  return of_its_kind ? of_its_kind : place([](const ibv_gid&) { return true; });
}

}  // namespace weir::verbs

extern "C" int weir_gid_index(const ibv_gid* gid) {
  const auto found = weir::verbs::find_gid(*gid);
  return found ? static_cast<int>(*found) : -1;
}
