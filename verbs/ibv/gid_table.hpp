// The port's GID table: one RoCE v2 GID for each address of the host, loopback included, last.
//
// An index keeps its meaning while the program runs: an address that goes leaves an empty place, and one that
// comes takes the first that is empty, as in the kernel's tables. The table is read once, and from
// watch_addresses() on again whenever the kernel has told of a change; every look-up asks first, so an
// address is there as soon as the call that made it has returned. What `weir run --gid` was told never
// changes.
//
// Threading: any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::verbs {

struct GidEntry {
  ibv_gid gid;  // all zeros in an empty place
  std::uint32_t interface_index;
  std::uint32_t interface_mtu = 0;  // bytes; 0: not known
};

std::vector<GidEntry> gid_table();  // its places up to the last that was ever taken
// Real tables have room for addresses yet to come; so has this one, and its empty places say so.
std::size_t gid_places();
// Nothing: the place is empty, or there is none.
std::optional<GidEntry> gid_at(std::size_t index);
// Where that GID stands; nullopt: it is not an address of this host. All of 127.0.0.0/8 is where 127.0.0.1
// is.
std::optional<std::size_t> find_gid(const ibv_gid& gid);

// A descriptor that is readable when addresses or interfaces have changed; -1: the kernel tells nobody. It
// stays ours, and is this process's (a forked child asks again). `changed` runs in whichever thread sees the
// change. gids: addresses came or went. interfaces: that, or an MTU is another.
enum class TableChange : std::uint8_t { gids, interfaces };
int watch_addresses(void (*changed)(TableChange));
// Whoever waits for the descriptor calls it then.
void read_changed_addresses();

}  // namespace weir::verbs
