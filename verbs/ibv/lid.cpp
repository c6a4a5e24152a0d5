#include "verbs/ibv/lid.hpp"

#include <optional>

#include "verbs/ibv/gid_table.hpp"

namespace weir::verbs {
namespace {

constexpr std::uint16_t loopback_lid = 1;
constexpr std::uint8_t hops = 64;  // the program says nothing about hops

struct Own {
  std::size_t index;
  ibv_gid gid;
  std::uint16_t lid() const { return static_cast<std::uint16_t>(gid.raw[14] << 8 | gid.raw[15]); }
};

std::optional<Own> first_ipv4() {
  const auto table = gid_table();
  for (std::size_t index = 0; index < table.size(); ++index) {
    const ibv_gid& gid = table[index].gid;
    if (is_unicast(gid) && is_ipv4(gid)) return Own{index, gid};
  }
  return std::nullopt;
}

}  // namespace

std::uint16_t port_lid() {
  const auto own = first_ipv4();
  return own ? own->lid() : loopback_lid;
}

ibv_ah_attr with_grh(const ibv_ah_attr& to) {
  if (to.is_global || to.dlid == 0) return to;
  const auto own = first_ipv4();
  if (!own) return to;
  ibv_ah_attr whole = to;
  whole.is_global = 1;
  whole.grh = {};
  whole.grh.dgid = own->gid;
  whole.grh.dgid.raw[14] = static_cast<std::uint8_t>(to.dlid >> 8);
  whole.grh.dgid.raw[15] = static_cast<std::uint8_t>(to.dlid);
  whole.grh.sgid_index = static_cast<std::uint8_t>(own->index);
  whole.grh.hop_limit = hops;
  return whole;
}

}  // namespace weir::verbs
