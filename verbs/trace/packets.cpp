#include "verbs/trace/packets.hpp"

#include <endian.h>

#include <algorithm>
#include <cstring>

namespace weir::verbs {
namespace {

using wire::Operation;
using wire::Service;

constexpr std::uint32_t max_psn = 0xffffff;

Service service_of(rnic::QpType type) {
  switch (type) {
    case rnic::QpType::uc:
      return Service::uc;
    case rnic::QpType::ud:
      return Service::ud;
    case rnic::QpType::xrc_send:
    case rnic::QpType::xrc_recv:
      return Service::xrc;
    default:
      return Service::rc;
  }
}

// The opcodes of a message's packets: IBA 9.2.1.
struct Segments {
  Operation first, middle, last, only;
};

// For a message that is never cut.
constexpr Segments always(Operation one) { return {one, one, one, one}; }

// nullopt: the request is local and sends no packet.
std::optional<Segments> segments_of(rnic::SendOpcode opcode) {
  using enum Operation;
  struct Row {
    rnic::SendOpcode opcode;
    Segments segments;
  };
  using To = rnic::SendOpcode;
  static constexpr Row rows[] = {
      {To::rdma_write, {write_first, write_middle, write_last, write_only}},
      {To::rdma_write_with_imm, {write_first, write_middle, write_last_imm, write_only_imm}},
      {To::send, {send_first, send_middle, send_last, send_only}},
      {To::send_with_imm, {send_first, send_middle, send_last_imm, send_only_imm}},
      {To::send_with_invalidate, {send_first, send_middle, send_last_invalidate, send_only_invalidate}},
      {To::rdma_read, always(read_request)},
      {To::compare_and_swap, always(compare_swap)},
      {To::fetch_and_add, always(fetch_add)},
      {To::atomic_write, always(atomic_write)}};
  const auto* const found = std::ranges::find(rows, opcode, &Row::opcode);
  return found != std::end(rows) ? std::optional(found->segments) : std::nullopt;
}
constexpr Segments read_response = {Operation::read_response_first, Operation::read_response_middle,
                                    Operation::read_response_last, Operation::read_response_only};

bool comes_back(rnic::SendOpcode opcode) {
  return opcode >= rnic::SendOpcode::rdma_read && opcode <= rnic::SendOpcode::fetch_and_add;
}

std::uint32_t packet_count(std::size_t bytes, std::uint32_t mtu) {
  return static_cast<std::uint32_t>(std::max<std::size_t>((bytes + mtu - 1) / mtu, 1));
}

Operation operation_of(const Segments& segments, std::uint32_t i, std::uint32_t count) {
  if (count == 1) return segments.only;
  return i == 0 ? segments.first : i + 1 == count ? segments.last : segments.middle;
}

std::span<const std::byte> part(std::span<const std::byte> all, std::uint32_t i, std::uint32_t mtu) {
  const std::size_t from = std::min<std::size_t>(std::size_t{i} * mtu, all.size());
  return all.subspan(from, std::min<std::size_t>(mtu, all.size() - from));
}

wire::Frame request(const Conversation& with, const rnic::SendWqe& wqe, const Segments& segments,
                    std::span<const std::byte> payload, std::uint32_t i, std::uint32_t count) {
  wire::Frame frame{with.there, {}};
  wire::Packet& p = frame.packet;
  const bool last = i + 1 == count, back = comes_back(wqe.opcode);
  p.bth.opcode = wire::opcode(service_of(with.type), operation_of(segments, i, count));
  p.bth.destination = with.peer.value();
  p.bth.psn = (with.psn + i) & max_psn;
  p.bth.solicited = wqe.solicited && last;
  p.bth.ack_request = last && (with.type == rnic::QpType::rc || with.type == rnic::QpType::xrc_send);
  if (with.type == rnic::QpType::ud) {
    p.bth.destination = wqe.datagram.destination.value();
    p.deth = {wqe.datagram.qkey, with.own.value()};
  }
  p.srqn = wqe.remote_srqn;
  p.reth = {wqe.remote_addr, wqe.rkey, static_cast<std::uint32_t>(payload.size())};
  p.atomic = {wqe.remote_addr, wqe.rkey,
              wqe.opcode == rnic::SendOpcode::compare_and_swap ? wqe.atomic.swap : wqe.atomic.compare_add,
              wqe.opcode == rnic::SendOpcode::compare_and_swap ? wqe.atomic.compare_add : 0};
  p.imm = be32toh(wqe.imm_be);
  p.invalidate = wqe.imm_be;
  if (!back) p.payload = part(payload, i, with.mtu);
  return frame;
}

wire::Frame answer(const Conversation& with, Operation operation, std::uint32_t psn, std::uint8_t syndrome) {
  wire::Frame frame{with.back, {}};
  frame.packet.bth.opcode = wire::opcode(service_of(with.type), operation);
  frame.packet.bth.destination = with.own.value();
  frame.packet.bth.psn = psn & max_psn;
  frame.packet.aeth = {syndrome, with.msn & max_psn};
  return frame;
}

void answers_of(Conversation& with, const rnic::SendWqe& wqe, std::span<const std::byte> payload,
                std::uint32_t last_psn, const TakePacket& take) {
  ++with.msn;
  if (wqe.opcode == rnic::SendOpcode::rdma_read) {
    const std::uint32_t count = packet_count(payload.size(), with.mtu);
    for (std::uint32_t i = 0; i < count; ++i) {
      wire::Frame frame =
          answer(with, operation_of(read_response, i, count), with.psn + i, wire::ack_without_credit);
      frame.packet.payload = part(payload, i, with.mtu);
      take(frame);
    }
    return;
  }
  Operation operation = Operation::acknowledge;
  if (wqe.opcode == rnic::SendOpcode::atomic_write) operation = Operation::read_response_only;  // annex A19
  if (comes_back(wqe.opcode)) operation = Operation::atomic_acknowledge;
  wire::Frame frame = answer(with, operation, last_psn, wire::ack_without_credit);
  if (payload.size() >= sizeof frame.packet.original)
    std::memcpy(&frame.packet.original, payload.data(), sizeof frame.packet.original);
  take(frame);
}

// The NAK code of Table 45 that the requester received; nullopt: it received none.
std::optional<std::uint8_t> nak_code(rnic::WcStatus status) {
  switch (status) {
    case rnic::WcStatus::rem_inv_req_err:
      return wire::nak_invalid_request;
    case rnic::WcStatus::rem_access_err:
      return wire::nak_remote_access;
    case rnic::WcStatus::rem_op_err:
      return wire::nak_remote_operational;
    default:
      return std::nullopt;
  }
}

}  // namespace

void packets_of(Conversation& with, const rnic::SendWqe& wqe, rnic::WcStatus status,
                std::span<const std::byte> payload, const TakePacket& take) {
  const auto segments = segments_of(wqe.opcode);
  if (!segments) return;
  const bool reliable = with.type == rnic::QpType::rc || with.type == rnic::QpType::xrc_send;
  const bool read = wqe.opcode == rnic::SendOpcode::rdma_read;
  const std::uint32_t count = comes_back(wqe.opcode) ? 1 : packet_count(payload.size(), with.mtu);
  if (status != rnic::WcStatus::success) {
    const auto code = nak_code(status);
    const bool sent = code || status == rnic::WcStatus::retry_exc_err;  // otherwise it was never sent
    if (sent) take(request(with, wqe, *segments, payload, 0, count));
    if (code) take(answer(with, Operation::acknowledge, with.psn, wire::nak | *code));
    return;
  }
  for (std::uint32_t i = 0; i < count; ++i) take(request(with, wqe, *segments, payload, i, count));
  if (reliable) answers_of(with, wqe, payload, with.psn + count - 1, take);
  // A READ uses one PSN for each packet of its response (IBA 9.7.3.1).
  with.psn = (with.psn + (read ? packet_count(payload.size(), with.mtu) : count)) & max_psn;
}

void packets_of_refusal(const Conversation& with, const rnic::SendWqe& wqe,
                        std::span<const std::byte> payload, std::uint8_t rnr_timer, const TakePacket& take) {
  const auto segments = segments_of(wqe.opcode);
  if (!segments) return;
  const std::uint32_t count = comes_back(wqe.opcode) ? 1 : packet_count(payload.size(), with.mtu);
  // The missing receive is noticed where it is needed: at the first packet of a SEND, and at the last packet
  // of a WRITE, which carries the immediate.
  const bool write = wqe.opcode == rnic::SendOpcode::rdma_write_with_imm;
  const std::uint32_t refused = write ? count - 1 : 0;
  for (std::uint32_t i = 0; i <= refused; ++i) take(request(with, wqe, *segments, payload, i, count));
  take(answer(with, Operation::acknowledge, with.psn + refused,
              static_cast<std::uint8_t>(wire::rnr_nak | (rnr_timer & 31))));
}

}  // namespace weir::verbs
