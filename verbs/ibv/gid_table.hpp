// The port's GID table: one RoCE v2 GID for each address of the host, loopback included, last.
//
// A snapshot taken once per process, so that an index keeps its meaning while the program runs.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace weir::verbs {

struct GidEntry {
  ibv_gid gid;
  std::uint32_t interface_index;
};

const std::vector<GidEntry>& gid_table();
// Real tables have room for addresses yet to come; so has this one, and its empty places say so.
std::size_t gid_places();
// Where that GID stands; nullopt: it is not an address of this host.
std::optional<std::size_t> find_gid(const ibv_gid& gid);

}  // namespace weir::verbs
