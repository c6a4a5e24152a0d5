// Which fields of a frame a receive hash is over (ibv_rx_hash_conf of ibv_create_qp_ex(3)).
//
// The fields are hashed in the order in which they stand in a packet: source address, destination address,
// source port, destination port, those of them that are wanted.
#pragma once

#include <cstdint>
#include <optional>

#include "rnic/ethernet/frame_key.hpp"
#include "rnic/ethernet/toeplitz.hpp"

namespace weir::rnic {

namespace rx_field {
inline constexpr std::uint32_t source_ipv4 = 1, destination_ipv4 = 2, source_ipv6 = 4, destination_ipv6 = 8,
                               source_port_tcp = 16, destination_port_tcp = 32, source_port_udp = 64,
                               destination_port_udp = 128;
inline constexpr std::uint32_t ipv4 = source_ipv4 | destination_ipv4, ipv6 = source_ipv6 | destination_ipv6,
                               tcp = source_port_tcp | destination_port_tcp,
                               udp = source_port_udp | destination_port_udp;
}  // namespace rx_field

// Lies in the segment of the process that receives; all zeros hash nothing.
struct RxHash {
  std::uint32_t fields = 0;  // rx_field::
  ToeplitzKey key{};
};

// nullopt: the frame has none of the hash's fields, or it is a fragment and the fields include ports. Only a
// datagram's first fragment has ports, and all fragments must stay together.
std::optional<std::uint32_t> rx_hash(const RxHash&, const FrameKey&);

}  // namespace weir::rnic
