// The connection manager's datagrams (IBA 12.6 to 12.11): messages of 256 bytes to queue pair 1, and the
// header that RDMA-CM puts before the private data (annex A11).
//
// encode_mad() and parse_mad() are each other's inverse for every message that parse_mad() accepts, except
// for what has no member here: reserved bits and the alternate path are written as zeros and ignored. Numbers
// are in host order. LIDs are never looked at (annex A17).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

namespace weir::wire {

inline constexpr std::size_t mad_bytes = 256;
inline constexpr std::uint32_t cm_qpn = 1;
inline constexpr std::uint32_t cm_qkey = 0x80010000;

using CmAddress = std::array<std::uint8_t, 16>;  // a GID

template <std::size_t n>
using PrivateData = std::array<std::byte, n>;

struct CmReq {
  static constexpr std::uint16_t attribute = 0x10;
  std::uint32_t local_id = 0;
  std::uint64_t service_id = 0, ca_guid = 0;
  std::uint32_t qkey = 0, qpn = 0, starting_psn = 0;  // the PSN that its receiver sends first
  std::uint8_t responder_resources = 0, initiator_depth = 0;
  std::uint8_t remote_cm_timeout = 0, local_cm_timeout = 0, max_cm_retries = 0;
  std::uint8_t transport = 0, extended_transport = 0;  // 0: RC, 1: UC, 3: see extended (1: XRC)
  bool flow_control = false, srq = false, rdc_exists = false;
  std::uint8_t retry_count = 0, rnr_retry_count = 0, path_mtu = 0;  // path_mtu: 1 = 256 .. 5 = 4096
  std::uint16_t pkey = 0xffff;
  std::uint16_t local_lid = 0xffff, remote_lid = 0xffff;
  CmAddress local_gid{}, remote_gid{};
  std::uint32_t flow_label = 0;
  std::uint8_t packet_rate = 0, traffic_class = 0, hop_limit = 0, sl = 0, ack_timeout = 0;
  bool subnet_local = false;
  PrivateData<92> private_data{};
};
struct CmMra {
  static constexpr std::uint16_t attribute = 0x11;
  std::uint32_t local_id = 0, remote_id = 0;
  std::uint8_t message = 0;  // 0: of a REQ, 1: of a REP, 2: of a LAP
  std::uint8_t service_timeout = 0;
  PrivateData<222> private_data{};
};
struct CmRej {
  static constexpr std::uint16_t attribute = 0x12;
  std::uint32_t local_id = 0, remote_id = 0;
  std::uint8_t message = 0;  // 0: a REQ, 1: a REP, 2: none of them
  std::uint8_t info_length = 0;
  std::uint16_t reason = 0;
  std::array<std::byte, 72> info{};
  PrivateData<148> private_data{};
};
struct CmRep {
  static constexpr std::uint16_t attribute = 0x13;
  std::uint32_t local_id = 0, remote_id = 0;
  std::uint32_t qkey = 0, qpn = 0, eecn = 0, starting_psn = 0;
  std::uint8_t responder_resources = 0, initiator_depth = 0, target_ack_delay = 0, failover = 0;
  bool flow_control = false, srq = false;
  std::uint8_t rnr_retry_count = 0;
  std::uint64_t ca_guid = 0;
  PrivateData<196> private_data{};
};
struct CmRtu {
  static constexpr std::uint16_t attribute = 0x14;
  std::uint32_t local_id = 0, remote_id = 0;
  PrivateData<224> private_data{};
};
struct CmDreq {
  static constexpr std::uint16_t attribute = 0x15;
  std::uint32_t local_id = 0, remote_id = 0, remote_qpn = 0;
  PrivateData<220> private_data{};
};
struct CmDrep {
  static constexpr std::uint16_t attribute = 0x16;
  std::uint32_t local_id = 0, remote_id = 0;
  PrivateData<224> private_data{};
};
struct CmSidrReq {
  static constexpr std::uint16_t attribute = 0x17;
  std::uint32_t request_id = 0;
  std::uint16_t pkey = 0xffff;
  std::uint64_t service_id = 0;
  PrivateData<216> private_data{};
};
struct CmSidrRep {
  static constexpr std::uint16_t attribute = 0x18;
  std::uint32_t request_id = 0;
  std::uint8_t status = 0, info_length = 0;
  std::uint32_t qpn = 0;
  std::uint64_t service_id = 0;
  std::uint32_t qkey = 0;
  std::array<std::byte, 72> info{};
  PrivateData<136> private_data{};
};

struct Mad {
  std::uint64_t transaction = 0;
  std::uint16_t status = 0;
  std::variant<CmReq, CmMra, CmRej, CmRep, CmRtu, CmDreq, CmDrep, CmSidrReq, CmSidrRep> message;
};

std::array<std::byte, mad_bytes> encode_mad(const Mad&);
// nullopt: not a MAD of the connection manager that is known here (class 7, version 2, method Send), or cut
// off.
std::optional<Mad> parse_mad(std::span<const std::byte>);

// RDMA-CM over these (annex A11.2): which port space and port a service id names, and who asks.
inline constexpr std::uint16_t port_space_tcp = 0x0106, port_space_udp = 0x0111, port_space_ib = 0x013f;
constexpr std::uint64_t rdma_service_id(std::uint16_t port_space, std::uint16_t port) {
  return std::uint64_t{port_space} << 16 | port;
}
// nullopt: no service of RDMA-CM.
struct RdmaService {
  std::uint16_t port_space = 0, port = 0;
};
std::optional<RdmaService> rdma_service(std::uint64_t service_id);

// The first 36 bytes of the private data of a REQ or SIDR_REQ whose service is RDMA-CM's; the consumer's own
// follows: 56 bytes of a REQ, 180 of a SIDR_REQ.
struct RdmaCmHeader {
  bool ipv6 = false;
  std::uint16_t source_port = 0;
  CmAddress source{}, destination{};  // IPv4: in the last four bytes, the others zero
};
inline constexpr std::size_t rdma_cm_header_bytes = 36;
void encode_rdma_cm_header(const RdmaCmHeader&, std::span<std::byte, rdma_cm_header_bytes>);
// nullopt: another version.
std::optional<RdmaCmHeader> parse_rdma_cm_header(std::span<const std::byte, rdma_cm_header_bytes>);

}  // namespace weir::wire
