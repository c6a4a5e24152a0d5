#include "verbs/cm/packet_messages.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace weir::cm {
namespace {

// 4.096 us * 2^20 = 4.3 s: each side's time to answer, as in the kernel.
constexpr std::uint8_t cm_timeout = 20, cm_retries = 15, ack_timeout = 18, hop_limit = 64;
constexpr std::uint8_t about_req = 0, about_rep = 1, about_other = 2;
constexpr std::uint16_t full_pkey = 0xffff;
// Of a REQ (IBA 12.6.5, table 99; XRC: annex A14).
constexpr std::uint8_t service_rc = 0, service_uc = 1, service_extended = 3, extended_is_xrc = 1;

std::optional<Transport> transport_of(const wire::CmReq& req) {
  if (req.transport == service_rc) return Transport::reliable;
  if (req.transport == service_uc) return Transport::unreliable;
  const bool xrc = req.transport == service_extended && req.extended_transport == extended_is_xrc;
  return xrc ? std::optional(Transport::extended) : std::nullopt;
}

template <std::size_t n>
void put_private(wire::PrivateData<n>& into, std::size_t at, std::span<const std::byte> data) {
  std::copy_n(data.begin(), std::min(data.size(), n - at), into.begin() + static_cast<std::ptrdiff_t>(at));
}

// A GID in the address format of annex A11: IPv4 in the last four bytes, zeros before.
wire::CmAddress plain(const Endpoint& endpoint) {
  wire::CmAddress address{};
  if (endpoint.is_v4())
    std::copy_n(endpoint.ip.begin() + 12, 4, address.begin() + 12);
  else
    address = endpoint.ip;
  return address;
}

IpBytes mapped(const wire::CmAddress& address, bool ipv6) {
  if (ipv6) return address;
  IpBytes ip{};
  ip[10] = ip[11] = 0xff;
  std::copy_n(address.begin() + 12, 4, ip.begin() + 12);
  return ip;
}

template <std::size_t n>
void put_header(wire::PrivateData<n>& into, const CmMessage& message) {
  wire::RdmaCmHeader header;
  header.ipv6 = !message.source.is_v4();
  header.source_port = message.source.port;
  header.source = plain(message.source);
  header.destination = plain(message.destination);
  wire::encode_rdma_cm_header(header, std::span(into).template first<wire::rdma_cm_header_bytes>());
  put_private(into, wire::rdma_cm_header_bytes, message.private_data);
}

// Reads a request's source, destination and port; nullopt: not an RDMA-CM service, or another version.
template <std::size_t n>
std::optional<bool> take_header(const wire::PrivateData<n>& from, std::uint64_t service_id,
                                const Addressing& came, CmMessage& into) {
  const auto service = wire::rdma_service(service_id);
  const auto header =
      wire::parse_rdma_cm_header(std::span(from).template first<wire::rdma_cm_header_bytes>());
  if (!service || !header || !is_port_space(service->port_space)) return std::nullopt;
  into.port_space = service->port_space;
  into.source.ip = came.source;
  into.source.port = header->source_port;
  into.destination.ip = came.destination;
  into.destination.port = service->port;
  into.private_data.assign(from.begin() + wire::rdma_cm_header_bytes, from.end());
  return mapped(header->source, header->ipv6) != came.source ||
         mapped(header->destination, header->ipv6) != came.destination;
}

template <std::size_t n>
std::vector<std::byte> bytes_of(const wire::PrivateData<n>& data, std::size_t most = n) {
  return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(most)};
}

struct Translator {
  const Addressing& came;
  Translated result;
  CmMessage& message = result.message;

  bool operator()(const wire::CmReq& req) {
    const auto transport = transport_of(req);
    if (!transport) return false;
    message.type = MessageType::req;
    message.transport = *transport;
    message.local_id = req.local_id;
    message.qpn = req.qpn;
    message.psn = req.starting_psn;
    message.responder_resources = req.responder_resources;
    message.initiator_depth = req.initiator_depth;
    message.flow_control = req.flow_control;
    message.retry_count = req.retry_count;
    message.rnr_retry_count = req.rnr_retry_count;
    message.srq = req.srq;
    message.path_mtu = std::clamp<std::uint8_t>(req.path_mtu, IBV_MTU_256, IBV_MTU_4096);
    const auto rewritten = take_header(req.private_data, req.service_id, came, message);
    result.rewritten = rewritten.value_or(false);
    return rewritten && req.local_id != 0;
  }
  bool operator()(const wire::CmSidrReq& req) {
    message.type = MessageType::sidr_req;
    message.local_id = req.request_id;
    const auto rewritten = take_header(req.private_data, req.service_id, came, message);
    result.rewritten = rewritten.value_or(false);
    return rewritten && req.request_id != 0;
  }
  bool operator()(const wire::CmRep& rep) {
    ids(MessageType::rep, rep);
    message.qpn = rep.qpn != 0 ? rep.qpn : rep.eecn;  // XRC: the field of RD has it
    message.psn = rep.starting_psn;
    message.responder_resources = rep.responder_resources;
    message.initiator_depth = rep.initiator_depth;
    message.flow_control = rep.flow_control;
    message.rnr_retry_count = rep.rnr_retry_count;
    message.srq = rep.srq;
    message.private_data = bytes_of(rep.private_data);
    return message.local_id != 0 && message.remote_id != 0;
  }
  bool operator()(const wire::CmRej& rej) {
    ids(MessageType::rej, rej);
    message.status = rej.reason;
    message.private_data = bytes_of(rej.private_data);
    return message.local_id != 0 || message.remote_id != 0;
  }
  bool operator()(const wire::CmMra& mra) { return ids(MessageType::mra, mra); }
  bool operator()(const wire::CmRtu& rtu) { return ids(MessageType::rtu, rtu); }
  bool operator()(const wire::CmDreq& dreq) { return ids(MessageType::dreq, dreq); }
  bool operator()(const wire::CmDrep& drep) { return ids(MessageType::drep, drep); }
  bool operator()(const wire::CmSidrRep& rep) {
    message.type = MessageType::sidr_rep;
    message.remote_id = rep.request_id;
    message.status = rep.status;
    message.qpn = rep.qpn;
    message.qkey = rep.qkey;
    message.private_data = bytes_of(rep.private_data);
    return message.remote_id != 0;
  }

  template <class From>
  bool ids(MessageType type, const From& from) {
    message.type = type;
    message.local_id = from.local_id;
    message.remote_id = from.remote_id;
    return message.local_id != 0 && message.remote_id != 0;
  }
};

template <class To>
To with_ids(const CmMessage& message) {
  To made;
  made.local_id = message.local_id;
  made.remote_id = message.remote_id;
  return made;
}

wire::CmReq req_of(const CmMessage& message, const Addressing& addressing) {
  wire::CmReq req;
  req.local_id = message.local_id;
  req.service_id = wire::rdma_service_id(message.port_space, message.destination.port);
  req.ca_guid = addressing.guid;
  req.qpn = message.qpn;
  req.starting_psn = message.psn;
  req.responder_resources = message.responder_resources;
  req.initiator_depth = message.initiator_depth;
  req.remote_cm_timeout = req.local_cm_timeout = cm_timeout;
  req.max_cm_retries = cm_retries;
  req.transport = message.transport == Transport::unreliable ? service_uc
                  : message.transport == Transport::extended ? service_extended
                                                             : service_rc;
  req.extended_transport = message.transport == Transport::extended ? extended_is_xrc : 0;
  req.flow_control = message.flow_control != 0;
  req.srq = message.srq != 0;
  req.retry_count = message.retry_count;
  req.rnr_retry_count = message.rnr_retry_count;
  req.path_mtu = message.path_mtu;
  req.pkey = full_pkey;
  req.local_gid = addressing.source;
  req.remote_gid = addressing.destination;
  req.hop_limit = hop_limit;
  req.ack_timeout = ack_timeout;
  put_header(req.private_data, message);
  return req;
}

wire::CmRep rep_of(const CmMessage& message, const Addressing& addressing) {
  auto rep = with_ids<wire::CmRep>(message);
  (message.transport == Transport::extended ? rep.eecn : rep.qpn) = message.qpn;
  rep.starting_psn = message.psn;
  rep.responder_resources = message.responder_resources;
  rep.initiator_depth = message.initiator_depth;
  rep.flow_control = message.flow_control != 0;
  rep.srq = message.srq != 0;
  rep.rnr_retry_count = message.rnr_retry_count;
  rep.ca_guid = addressing.guid;
  put_private(rep.private_data, 0, message.private_data);
  return rep;
}

}  // namespace

wire::Mad mad_of(const CmMessage& message, const Addressing& addressing, std::uint64_t transaction) {
  wire::Mad mad;
  mad.transaction = transaction;
  switch (message.type) {
    case MessageType::req:
      mad.message = req_of(message, addressing);
      break;
    case MessageType::rep:
      mad.message = rep_of(message, addressing);
      break;
    case MessageType::rej: {
      auto rej = with_ids<wire::CmRej>(message);
      // The asking side refuses a REP; a request is refused by the side that has no number yet, or its own.
      rej.message = message.remote_id == 0 ? about_other : message.local_id == 0 ? about_req : about_rep;
      rej.reason = message.status;
      put_private(rej.private_data, 0, message.private_data);
      mad.message = rej;
      break;
    }
    case MessageType::mra: {
      auto mra = with_ids<wire::CmMra>(message);
      mra.message = about_req;
      mra.service_timeout = cm_timeout + 5;  // 137 s, because an application decides
      mad.message = mra;
      break;
    }
    case MessageType::rtu:
      mad.message = with_ids<wire::CmRtu>(message);
      break;
    case MessageType::dreq: {
      auto dreq = with_ids<wire::CmDreq>(message);
      dreq.remote_qpn = message.qpn;
      mad.message = dreq;
      break;
    }
    case MessageType::drep:
      mad.message = with_ids<wire::CmDrep>(message);
      break;
    case MessageType::sidr_req: {
      wire::CmSidrReq req;
      req.request_id = message.local_id;
      req.pkey = full_pkey;
      req.service_id = wire::rdma_service_id(message.port_space, message.destination.port);
      put_header(req.private_data, message);
      mad.message = req;
      break;
    }
    case MessageType::sidr_rep: {
      wire::CmSidrRep rep;
      rep.request_id = message.remote_id;
      rep.status = static_cast<std::uint8_t>(message.status);
      rep.qpn = message.qpn;
      rep.qkey = message.qkey;
      put_private(rep.private_data, 0, message.private_data);
      mad.message = rep;
      break;
    }
  }
  return mad;
}

std::optional<Translated> message_of(const wire::Mad& mad, const Addressing& addressing) {
  Translator translator{addressing, {}};
  if (!std::visit(translator, mad.message)) return std::nullopt;
  return std::move(translator.result);
}

}  // namespace weir::cm
