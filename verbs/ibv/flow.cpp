// ibv_create_flow, ibv_destroy_flow (ibv_create_flow(3)): the specifications of a flow are turned into one
// value and one mask over a frame's fields (rnic/ethernet/frame_key.hpp).
//
// Supported are normal flows of Ethernet, IPv4, IPv6, TCP and UDP specifications. All else fails with
// EOPNOTSUPP: tunnels and inner headers, ESP, GRE, MPLS, actions, default and sniffer flows, flags.
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

#include "rnic/ethernet/steering.hpp"
#include "verbs/ibv/objects.hpp"

namespace weir::verbs {
namespace {

struct Flow {
  ibv_flow flow;
  Qp* qp;
  std::uint32_t rule;
};

// A flow under construction: each specification sets the fields that its mask names.
struct Fields {
  rnic::FrameKey value{}, mask{};
};

template <class Spec>
Spec read_spec(const std::byte* at) {
  Spec spec;
  std::memcpy(&spec, at, sizeof spec);
  return spec;
}

// Naming a layer always matches its protocol number, however few of its fields are asked for.
void demand(std::uint8_t rnic::FrameKey::* field, std::uint8_t number, Fields& f) {
  f.value.*field = number;
  f.mask.*field = 0xff;
}

// Value and mask are structs of the same type; `copy` copies either into a frame key.
template <class Spec, class Copy>
bool add(const Spec& spec, Fields& f, Copy copy) {
  copy(spec.val, f.value);
  copy(spec.mask, f.mask);
  return true;
}

bool add_ethernet(const ibv_flow_spec_eth& spec, Fields& f) {
  return add(spec, f, [](const ibv_flow_eth_filter& from, rnic::FrameKey& to) {
    std::memcpy(to.destination_mac, from.dst_mac, sizeof to.destination_mac);
    std::memcpy(to.source_mac, from.src_mac, sizeof to.source_mac);
    to.ether_type_be = from.ether_type;
    to.vlan_tag_be = from.vlan_tag;
  });
}

constexpr auto copy_ipv4 = [](const auto& from, rnic::FrameKey& to) {
  std::memcpy(to.source_ip, &from.src_ip, sizeof from.src_ip);
  std::memcpy(to.destination_ip, &from.dst_ip, sizeof from.dst_ip);
};

bool add_ipv4(const ibv_flow_spec_ipv4& spec, Fields& f) {
  demand(&rnic::FrameKey::ip_version, 4, f);
  return add(spec, f, copy_ipv4);
}

bool add_ipv4_ext(const ibv_flow_spec_ipv4_ext& spec, Fields& f) {
  if (spec.mask.flags != 0) return false;
  demand(&rnic::FrameKey::ip_version, 4, f);
  return add(spec, f, [](const ibv_flow_ipv4_ext_filter& from, rnic::FrameKey& to) {
    copy_ipv4(from, to);
    to.protocol = from.proto;
    to.traffic_class = from.tos;
    to.hop_limit = from.ttl;
  });
}

bool add_ipv6(const ibv_flow_spec_ipv6& spec, Fields& f) {
  demand(&rnic::FrameKey::ip_version, 6, f);
  return add(spec, f, [](const ibv_flow_ipv6_filter& from, rnic::FrameKey& to) {
    std::memcpy(to.source_ip, from.src_ip, sizeof to.source_ip);
    std::memcpy(to.destination_ip, from.dst_ip, sizeof to.destination_ip);
    to.flow_label_be = from.flow_label;
    to.protocol = from.next_hdr;
    to.traffic_class = from.traffic_class;
    to.hop_limit = from.hop_limit;
  });
}

bool add_ports(const ibv_flow_spec_tcp_udp& spec, std::uint8_t protocol, Fields& f) {
  demand(&rnic::FrameKey::protocol, protocol, f);
  return add(spec, f, [](const ibv_flow_tcp_udp_filter& from, rnic::FrameKey& to) {
    to.source_port_be = from.src_port;
    to.destination_port_be = from.dst_port;
  });
}

// False: this specification is not supported.
bool add_spec(ibv_flow_spec_type type, const std::byte* at, Fields& f) {
  switch (type) {
    case IBV_FLOW_SPEC_ETH:
      return add_ethernet(read_spec<ibv_flow_spec_eth>(at), f);
    case IBV_FLOW_SPEC_IPV4:
      return add_ipv4(read_spec<ibv_flow_spec_ipv4>(at), f);
    case IBV_FLOW_SPEC_IPV4_EXT:
      return add_ipv4_ext(read_spec<ibv_flow_spec_ipv4_ext>(at), f);
    case IBV_FLOW_SPEC_IPV6:
      return add_ipv6(read_spec<ibv_flow_spec_ipv6>(at), f);
    case IBV_FLOW_SPEC_TCP:
      return add_ports(read_spec<ibv_flow_spec_tcp_udp>(at), IPPROTO_TCP, f);
    case IBV_FLOW_SPEC_UDP:
      return add_ports(read_spec<ibv_flow_spec_tcp_udp>(at), IPPROTO_UDP, f);
    default:
      return false;
  }
}

std::size_t size_of(ibv_flow_spec_type type) {
  switch (type) {
    case IBV_FLOW_SPEC_ETH:
      return sizeof(ibv_flow_spec_eth);
    case IBV_FLOW_SPEC_IPV4:
      return sizeof(ibv_flow_spec_ipv4);
    case IBV_FLOW_SPEC_IPV4_EXT:
      return sizeof(ibv_flow_spec_ipv4_ext);
    case IBV_FLOW_SPEC_IPV6:
      return sizeof(ibv_flow_spec_ipv6);
    case IBV_FLOW_SPEC_TCP:
    case IBV_FLOW_SPEC_UDP:
      return sizeof(ibv_flow_spec_tcp_udp);
    default:
      return 0;
  }
}

// Returns 0 or an errno. The specifications follow the attributes, each with its own size.
int read_flow(const ibv_flow_attr& attr, rnic::FlowMatch& match) {
  if (attr.port != 1) return EINVAL;
  if (attr.type != IBV_FLOW_ATTR_NORMAL || attr.flags != 0 || attr.comp_mask != 0) return EOPNOTSUPP;
  Fields fields;
  const auto* at = reinterpret_cast<const std::byte*>(&attr + 1);
  for (unsigned i = 0; i < attr.num_of_specs; ++i) {
    ibv_flow_spec_type type;
    std::uint16_t size;
    std::memcpy(&type, at, sizeof type);
    std::memcpy(&size, at + sizeof type, sizeof size);
    if (size_of(type) == 0) return EOPNOTSUPP;
    if (size != size_of(type)) return EINVAL;
    if (!add_spec(type, at, fields)) return EOPNOTSUPP;
    at += size;
  }
  match.priority = attr.priority;
  match.value = words_of(fields.value);
  match.mask = words_of(fields.mask);
  for (std::size_t i = 0; i < match.value.size(); ++i) match.value[i] &= match.mask[i];
  return 0;
}

}  // namespace

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attr) {
  rnic::FlowMatch match{};
  if (const int error = qp->qp_type == IBV_QPT_RAW_PACKET ? read_flow(*attr, match) : EINVAL; error != 0) {
    errno = error;
    return nullptr;
  }
  Qp& owner = qp_of(qp);
  const auto rule = context_of(qp->context).adapter().steering().add(owner.nic_qp->qpn().index(), match);
  if (!rule) {
    errno = ENOMEM;
    return nullptr;
  }
  owner.flows.fetch_add(1);
  auto* flow = new Flow{{0, qp->context, *rule}, &owner, *rule};
  return &flow->flow;
}

int destroy_flow(ibv_flow* flow) {
  auto* ours = reinterpret_cast<Flow*>(flow);
  context_of(flow->context).adapter().steering().remove(ours->rule);
  ours->qp->flows.fetch_sub(1);
  delete ours;
  return 0;
}

}  // namespace weir::verbs
