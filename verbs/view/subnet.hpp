// A subnet as its management sees it: channel adapters and switches, their ports and cables; and what its
// nodes answer to subnet management packets (IBA 14.2), so that ibnetdiscover, iblinkinfo and smpquery show
// it.
//
// A switch's LID is one that no host has. Ports count from 1; a switch's port 0 is itself. Pure; packets may
// be any bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::verbs {

inline constexpr std::size_t mad_bytes = 256;
using Mad = std::array<std::uint8_t, mad_bytes>;

struct SubnetPort {
  std::size_t peer = 0;  // node
  std::uint8_t peer_port = 0;
  bool up = true;
};

struct SubnetNode {
  std::string name;
  std::uint64_t guid = 0;
  std::uint16_t lid = 0;
  bool is_switch = false;
  std::vector<SubnetPort> ports;  // the first is port 1
};

struct Subnet {
  std::vector<SubnetNode> nodes;
  std::size_t self = 0;  // the node that asks
};

// The GUID of the host of this name; that of a switch differs from it.
using GuidOf = std::uint64_t (*)(std::string_view name);

// Of what twin/hosts writes for a network's hosts: "switch NAME", "host NAME ADDRESS" and "cable NODE NODE
// up|down", a line each. Lines that are none of these are skipped, and cables to nodes that are not there.
// Nothing: the host `self` is not in it.
std::optional<Subnet> read_subnet(std::string_view topology, std::string_view self, GuidOf guid_of);
// A host without a network: one port, which nothing is known to be at the other end of.
Subnet lonely_subnet(std::string_view self, std::uint16_t lid, GuidOf guid_of);

// The answer to a subnet management packet, directed (class 0x81) or for the node with that LID (class 0x01).
// Nothing: no node would answer it.
std::optional<Mad> answer_smp(const Subnet& subnet, const Mad& request, std::uint16_t lid);

}  // namespace weir::verbs
