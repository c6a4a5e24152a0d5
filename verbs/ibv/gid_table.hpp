// The port's GID table: one RoCE v2 GID for each address of the host. 127.0.0.1 and ::1 are in it only if the
// host has no other address: the kernel makes no such GID for a NIC, and programs that choose by rank or by
// place (brpc takes the last one, Mooncake prefers 127.0.0.1 to private addresses) would choose one that no
// other host reaches.
//
// An index keeps its meaning while the program runs, also loopback's when another address comes. An address
// that goes leaves an empty place, and a new one takes the first empty place, as in the kernel's tables. The
// table is read once and, after watch_addresses(), again whenever the kernel announces a change. Every
// look-up checks for that first, so an address is there as soon as the call that added it has returned.
// Addresses from `weir run --gid` never change.
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
  enum class Cable : std::uint8_t {
    unknown,  // no carrier since the first look: an interface without a cable may be what its host has
    in,
    pulled,  // it has lost the carrier that it had
  } cable = Cable::unknown;
};

std::vector<GidEntry> gid_table();  // every place up to the last that was ever used
// Like a real table, this one has room for addresses yet to come; its empty places are all zeros.
std::size_t gid_places();
// nullopt: the place is empty, or the index is beyond the table.
std::optional<GidEntry> gid_at(std::size_t index);
// The index of that GID; nullopt: it is not an address of this host. Loopback addresses always are: where
// the table has none, they are found at the first address of their kind.
std::optional<std::size_t> find_gid(const ibv_gid& gid);

// Whether the interface of the first address that others reach has lost its carrier: the port is down.
bool cable_is_pulled();

// From now on the table has those for which `is_gone` is true no more, until it is false again; then they
// have their places again. find_place() finds them all the same.
void hide_gids(bool (*is_gone)(std::size_t index));
std::optional<std::size_t> find_place(const ibv_gid& gid);

// An address that another host may reach: not loopback, not a group.
bool is_unicast(const ibv_gid& gid);
bool is_ipv4(const ibv_gid& gid);

// A descriptor that is readable when addresses or interfaces have changed; -1: it cannot be had. It stays
// ours and belongs to this process (a forked child asks again). `changed` runs in the thread that notices the
// change. gids: addresses came or went. interfaces: likewise, or an interface, its MTU or its carrier
// changed.
enum class TableChange : std::uint8_t { gids, interfaces };
int watch_addresses(void (*changed)(TableChange));
// Call this when the descriptor is readable.
void read_changed_addresses();

}  // namespace weir::verbs
