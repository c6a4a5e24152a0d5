#include "verbs/ibv/gid_table.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "link/not_cancelled.hpp"
#include "verbs/ibv/shape.hpp"

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

// Programs that are told nothing take index 0, so the address others are most likely to know comes first.
int rank(const ifaddrs& a) {
  const bool loopback = a.ifa_flags & IFF_LOOPBACK;
  return (loopback ? 2 : 0) + (a.ifa_addr->sa_family == AF_INET6 ? 1 : 0);
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
  for (const ifaddrs* a : usable) table.push_back({*gid_of(a->ifa_addr), ::if_nametoindex(a->ifa_name)});
  // A network namespace whose loopback is down still has processes that want to talk to each other.
  if (table.empty()) table.push_back({gid_of(in_addr{htonl(INADDR_LOOPBACK)}), 1});
  return table;
}

// Addresses that need not be the host's, as far as the host is concerned on its first interface.
std::vector<GidEntry> told_addresses() {
  const std::vector<GidEntry> own = read_addresses();
  std::vector<GidEntry> table;
  for (const ibv_gid& gid : shape().gids) {
    const auto same = [&](const GidEntry& e) { return std::memcmp(e.gid.raw, gid.raw, sizeof gid.raw) == 0; };
    const auto found = std::find_if(own.begin(), own.end(), same);
    table.push_back({gid, (found != own.end() ? *found : own.front()).interface_index});
  }
  return table;
}

}  // namespace

std::size_t gid_places() { return std::max(std::size_t{16}, gid_table().size()); }

const std::vector<GidEntry>& gid_table() {
  static const auto* table = [] {
    const link::NotCancelled whole;
    return new std::vector<GidEntry>(shape().gids.empty() ? read_addresses() : told_addresses());
  }();
  return *table;
}

std::optional<std::size_t> find_gid(const ibv_gid& gid) {
  const auto& table = gid_table();
  for (std::size_t i = 0; i < table.size(); ++i)
    if (std::memcmp(table[i].gid.raw, gid.raw, sizeof gid.raw) == 0) return i;
  // All of 127.0.0.0/8 is this host.
  static constexpr std::uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::memcmp(gid.raw, mapped, 12) == 0 && gid.raw[12] == 127) return 0;
  return std::nullopt;
}

}  // namespace weir::verbs
