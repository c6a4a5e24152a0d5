#include "rnic/packet/unreliable_responder.hpp"

#include "rnic/packet/message_opcodes.hpp"
#include "wire/byte_order.hpp"

namespace weir::rnic::packet {
namespace {

// The network may deliver a packet late by this many PSNs. If a packet is farther behind, the sender is ahead
// of us by a gap or has restarted.
constexpr std::int32_t late_psns = 1 << 16;

}  // namespace

void UnreliableResponder::receive(const wire::Packet& packet) {
  const auto operation = static_cast<wire::Operation>(packet.bth.opcode & 31);
  if (packet.bth.opcode >> 5 != static_cast<unsigned>(wire::Service::uc)) {
    ++counts_.dropped;
    return;
  }
  const Psn psn(packet.bth.psn);
  const std::int32_t ahead = psn - expected_;
  if (ahead < 0 && ahead >= -late_psns) {
    ++counts_.duplicates;
    return;
  }
  if (ahead != 0) message_ = {};
  expected_ = psn + 1;
  const bool opens = is_first(operation) || is_only(operation);
  if (opens) message_ = {};
  const bool taken = (!opens || begin(packet, operation)) && take(packet, operation);
  if (taken) {
    ++counts_.packets;
    return;
  }
  message_ = {};
  ++counts_.dropped;
}

bool UnreliableResponder::begin(const wire::Packet& packet, wire::Operation operation) {
  if (!is_write(operation)) {
    if (target_.begin_send() != Verdict::done) return false;
    message_ = {.kind = Kind::send};
    return true;
  }
  const std::uint64_t length = packet.reth.length, here = packet.payload.size();
  const bool sound = length <= longest_message && (is_only(operation) ? length == here : length > here);
  if (!sound || target_.begin_write(packet.reth.addr, packet.reth.rkey, length) != Verdict::done)
    return false;
  message_ = {.kind = Kind::write, .length = length};
  return true;
}

// Takes a packet of the current message if it fits its place in the message.
bool UnreliableResponder::take(const wire::Packet& packet, wire::Operation operation) {
  if (message_.kind != (is_write(operation) ? Kind::write : Kind::send)) return false;
  const std::size_t size = packet.payload.size();
  const bool goes_on = is_first(operation) || is_middle(operation);
  if (goes_on ? size != path_mtu_ : size > path_mtu_ || (size == 0 && !is_only(operation))) return false;
  const std::uint64_t behind = message_.offset + size;
  if (message_.kind == Kind::write && (goes_on ? behind >= message_.length : behind != message_.length))
    return false;
  if (size != 0 && target_.append(message_.offset, packet.payload) != Verdict::done) return false;
  message_.offset = behind;
  if (goes_on) return true;
  Ending ending;
  if (carries_imm(operation)) ending.imm_be = wire::swap_network(packet.imm);
  ending.solicited = packet.bth.solicited;
  ending.byte_len = behind;
  if (target_.finish(ending) != Verdict::done) return false;
  message_ = {};
  return true;
}

}  // namespace weir::rnic::packet
