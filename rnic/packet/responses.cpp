// The responder's send path: READ responses and old values in the order of their requests, then an
// acknowledgement or a refusal for everything before it.
#include "rnic/packet/responder.hpp"

namespace weir::rnic::packet {
namespace {

using wire::Operation;

Operation response_operation(bool first, bool last) {
  if (first && last) return Operation::read_response_only;
  if (first) return Operation::read_response_first;
  return last ? Operation::read_response_last : Operation::read_response_middle;
}

}  // namespace

bool Responder::has_packet() const { return !responses_.empty() || negative_ || ack_owed_; }

void Responder::acknowledge_again() { ack_owed_ = ack_owed_ || (ack_was_last_ && !fatal_); }

bool Responder::next_packet(Outgoing& out) {
  if (!responses_.empty() && next_response(out)) {
    ack_was_last_ = false;
    return true;
  }
  if (!negative_ && !ack_owed_) return false;
  ack_was_last_ = !negative_;
  wire::Packet packet;
  Psn psn(expected_.value() - 1);
  if (negative_) {
    packet.aeth.syndrome = *negative_;
    psn = fatal_ ? fatal_->psn : expected_;
    auto& counted = fatal_                    ? counts_.fatal_naks
                    : *negative_ == wire::nak ? counts_.sequence_naks
                                              : counts_.rnr_naks;
    ++counted;
  } else {
    packet.aeth.syndrome = wire::ack_without_credit;
    ++counts_.acks;
  }
  negative_.reset();
  ack_owed_ = false;  // a NAK acknowledges as well
  header(out, packet, Operation::acknowledge, psn, 0);
  return true;
}

// False: the memory is gone, and the request is now refused.
bool Responder::next_response(Outgoing& out) {
  Response& response = responses_.front();
  const Remembered& of = response.of;
  wire::Packet packet;
  packet.aeth.syndrome = wire::ack_without_credit;
  packet.original = of.original;
  const Psn psn = of.first + response.sent;
  if (of.operation != Operation::read_request) {
    const bool writes = of.operation == Operation::atomic_write;
    header(out, packet, writes ? Operation::read_response_only : Operation::atomic_acknowledge, psn, 0);
    out.retransmitted = response.replay;
    responses_.pop_front();
    return true;
  }
  const std::uint64_t offset = std::uint64_t{response.sent} * attributes_.path_mtu;
  const auto bytes =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(attributes_.path_mtu, of.length - offset));
  const bool last = response.sent + 1 == of.packets;
  header(out, packet, response_operation(response.sent == 0, last), psn, bytes);
  out.retransmitted = response.replay;
  if (bytes != 0) {
    const Verdict verdict = target_.read(of.srqn, of.addr + offset, of.rkey, bytes, out.room, out.pieces);
    if (verdict != Verdict::done) {
      unreadable(out);
      return false;
    }
  }
  ++response.sent;
  if (last) responses_.pop_front();
  return true;
}

void Responder::unreadable(const Outgoing& packet) {
  responses_.clear();
  if (fatal_) return;  // a later request was already refused, which ends this one too
  target_.refuse(Verdict::nak_operational);
  fatal_ = {packet.psn, wire::nak | wire::nak_remote_operational};
  negative_ = fatal_->syndrome;
}

void Responder::header(Outgoing& out, wire::Packet& packet, Operation operation, Psn psn,
                       std::size_t payload) const {
  packet.bth.opcode = wire::opcode(attributes_.service, operation);
  packet.bth.pkey = attributes_.pkey;
  packet.bth.destination = attributes_.destination;
  packet.bth.psn = psn.value();
  packet.aeth.msn = msn_ & 0xffffff;
  out.header_bytes = static_cast<std::uint8_t>(wire::encode_headers(packet, payload, out.header));
  out.pad = wire::pad_of(payload);
  out.payload_bytes = static_cast<std::uint32_t>(payload);
  out.is_ours = false;
  out.retransmitted = false;
  out.psn = psn;
  out.wqe = 0;
  out.pieces = 0;
}

}  // namespace weir::rnic::packet
