// The connection manager's messages: IBTA 12.6's REQ, MRA, REJ, REP, RTU, DREQ, DREP and SIDR_REQ, SIDR_REP,
// with the fields a same-host connection uses, carried by the link as messages of one kind.
//
// parse() believes nothing: a message it returns has every field in range and a private data no longer than
// its kind allows. Values; safe from any thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "verbs/cm/endpoint.hpp"

namespace weir::cm {

enum class MessageType : std::uint8_t { req = 1, mra, rej, rep, rtu, dreq, drep, sidr_req, sidr_rep };

// IBTA table 99 (12.6.7.2), those that occur here.
enum class RejectReason : std::uint16_t {
  timeout = 4,
  invalid_communication_id = 6,
  invalid_service_id = 8,
  invalid_transport = 9,
  consumer_defined = 28,
};

// What the two queue pairs are: the requester's says it, and the listener takes requests of its own type
// alone.
enum class Transport : std::uint8_t { reliable, unreliable, extended };  // RC, UC, XRC

// IBTA table 119 (12.11.2): status of a SIDR_REP.
enum class SidrStatus : std::uint8_t { success = 0, no_such_service = 1, rejected = 2 };

// What a consumer may put into each kind of message (IBTA 12.6; a REQ and a SIDR_REQ lose 36 bytes to the IP
// addressing header of annex A11).
inline constexpr std::size_t req_private_bytes = 56;
inline constexpr std::size_t rep_private_bytes = 196;
inline constexpr std::size_t rej_private_bytes = 148;
inline constexpr std::size_t sidr_req_private_bytes = 180;
inline constexpr std::size_t sidr_rep_private_bytes = 136;
inline constexpr std::size_t max_private_bytes = rep_private_bytes;

// One flat form for all types; a field that its type does not carry is zero.
struct CmMessage {
  MessageType type{};
  std::uint32_t local_id = 0;   // the sender's number for the connection
  std::uint32_t remote_id = 0;  // the receiver's, once the sender knows it

  // req, sidr_req: the service, the requester and the destination.
  std::uint16_t port_space = 0;
  Endpoint source;
  Endpoint destination;

  // req, rep: the sender's queue pair and what it asks of ours. sidr_rep: qpn and qkey.
  std::uint32_t qpn = 0;  // 24 bits
  std::uint32_t psn = 0;  // 24 bits
  std::uint32_t qkey = 0;
  std::uint8_t responder_resources = 0;
  std::uint8_t initiator_depth = 0;
  std::uint8_t flow_control = 0;
  std::uint8_t retry_count = 0;
  std::uint8_t rnr_retry_count = 0;
  std::uint8_t srq = 0;
  Transport transport{};  // req, rep
  ibv_ece ece{};
  // req, between hosts only: the largest path MTU (an ibv_mtu) of the way there; 0: not said.
  std::uint8_t path_mtu = 0;

  std::uint16_t status = 0;  // rej: RejectReason; sidr_rep: SidrStatus
  std::vector<std::byte> private_data;
};

std::vector<std::byte> encode(const CmMessage& message);
// Nothing: malformed.
std::optional<CmMessage> parse(std::span<const std::byte> bytes);

// Of a process that does not know the connection (any more), so that the peer need not wait: DREP to a DREQ;
// to a REP or RTU a REJ (reason 6, IBTA 12.6.7.2). Nothing to others.
std::optional<CmMessage> answer_of_nobody(const CmMessage& message);

std::size_t private_data_limit(MessageType type);

// Those of rdma_port_space that there are, and no other number.
bool is_port_space(std::uint32_t number);

}  // namespace weir::cm
