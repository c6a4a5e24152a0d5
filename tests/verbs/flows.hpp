// What tests of raw packets share: queue pairs that send them, and flows that direct them.
#pragma once

#include <arpa/inet.h>

#include "verbs_test.hpp"

namespace weir::verbs_test {

// To RTS; 0, or the first error.
inline int bring_up_raw(ibv_qp* qp) {
  ibv_qp_attr attr{};
  attr.port_num = 1;
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    attr.qp_state = state;
    const int port = state == IBV_QPS_INIT ? int{IBV_QP_PORT} : 0;
    if (const int error = ibv_modify_qp(qp, &attr, IBV_QP_STATE | port); error != 0) return error;
  }
  return 0;
}

using Flow = std::unique_ptr<ibv_flow, Destroyer<ibv_destroy_flow>>;

template <class Spec>
Spec make_spec(ibv_flow_spec_type type) {
  Spec spec{};
  spec.type = type;
  spec.size = sizeof spec;
  return spec;
}

inline ibv_flow_spec_eth ethernet(std::uint8_t destination) {
  auto spec = make_spec<ibv_flow_spec_eth>(IBV_FLOW_SPEC_ETH);
  spec.val.dst_mac[5] = destination;
  std::memset(spec.mask.dst_mac, 0xff, 6);
  spec.val.dst_mac[0] = 2;
  return spec;
}
inline ibv_flow_spec_ipv4_ext ipv4(std::uint8_t source_host) {
  auto spec = make_spec<ibv_flow_spec_ipv4_ext>(IBV_FLOW_SPEC_IPV4_EXT);
  spec.val.src_ip = htonl(10u << 24 | source_host);
  spec.mask.src_ip = 0xffffffff;
  return spec;
}
inline ibv_flow_spec_ipv6 ipv6(std::uint8_t source_host) {
  auto spec = make_spec<ibv_flow_spec_ipv6>(IBV_FLOW_SPEC_IPV6);
  spec.val.src_ip[0] = 0xfd;
  spec.val.src_ip[15] = source_host;
  std::memset(spec.mask.src_ip, 0xff, 16);
  return spec;
}
inline ibv_flow_spec_tcp_udp ports(ibv_flow_spec_type type, std::uint16_t destination) {
  auto spec = make_spec<ibv_flow_spec_tcp_udp>(type);
  spec.val.dst_port = htons(destination);
  spec.mask.dst_port = 0xffff;
  return spec;
}

// The attributes and, behind them, the specifications.
class FlowAttributes {
 public:
  template <class... Spec>
  explicit FlowAttributes(const Spec&... specs) {
    ibv_flow_attr attr{};
    attr.type = IBV_FLOW_ATTR_NORMAL;
    attr.port = 1;
    attr.num_of_specs = sizeof...(specs);
    append(attr);
    (append(specs), ...);
  }
  ibv_flow_attr* get() { return reinterpret_cast<ibv_flow_attr*>(bytes_.data()); }
  ibv_flow_attr* operator->() { return get(); }

 private:
  template <class T>
  void append(const T& part) {
    bytes_.resize(bytes_.size() + sizeof part);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof part, &part, sizeof part);
  }
  std::vector<std::byte> bytes_;
};

}  // namespace weir::verbs_test
