// The responder's receive path: requests in the order of their PSNs (IBA 9.7.4, 9.7.5).
#include "rnic/packet/responder.hpp"

#include <algorithm>

#include "rnic/packet/message_opcodes.hpp"
#include "wire/byte_order.hpp"

namespace weir::rnic::packet {
namespace {

using wire::Operation;

constexpr std::uint8_t sequence_nak = wire::nak;
// PSNs that a peer may have in flight, READs apart: at an MTU of 1024, 64 MiB.
constexpr std::int32_t widest_window = 1 << 16;

bool is_atomic(Operation op) {
  return op == Operation::compare_swap || op == Operation::fetch_add || op == Operation::atomic_write;
}

bool answered_by_data(Operation op) { return op == Operation::read_request || is_atomic(op); }

std::uint8_t syndrome_of(Verdict verdict) {
  if (verdict == Verdict::nak_access) return wire::nak | wire::nak_remote_access;
  if (verdict == Verdict::nak_operational) return wire::nak | wire::nak_remote_operational;
  return wire::nak | wire::nak_invalid_request;
}

}  // namespace

Responder::Responder(Target& target, const ResponderAttributes& attributes)
    : target_(target), attributes_(attributes), expected_(attributes.first_psn) {}

void Responder::set(const ResponderAttributes& attributes) {
  attributes_.min_rnr_timer = attributes.min_rnr_timer;
  attributes_.max_dest_rd_atomic = attributes.max_dest_rd_atomic;
}

bool Responder::is_answer(const wire::Packet& packet) {
  const auto operation = static_cast<Operation>(packet.bth.opcode & 31);
  return operation >= Operation::read_response_first && operation <= Operation::atomic_acknowledge;
}

void Responder::receive(const wire::Packet& packet) {
  if (packet.bth.opcode >> 5 != static_cast<unsigned>(attributes_.service) || is_answer(packet)) {
    ++counts_.dropped;
    return;
  }
  const Psn psn(packet.bth.psn);
  if (is_outside(psn)) {
    ++counts_.outside;
    return;
  }
  const auto operation = static_cast<Operation>(packet.bth.opcode & 31);
  if (fatal_ && psn >= fatal_->psn) {  // the requester missed the refusal and asks again
    negative_ = fatal_->syndrome;
    return;
  }
  if (psn < expected_) return duplicate(packet, operation);
  if (psn > expected_) {
    ++counts_.early;
    if (!silent_) negative_ = sequence_nak;
    silent_ = true;
    return;
  }
  silent_ = false;
  takes_ = 1;
  switch (const Verdict verdict = execute(packet, operation)) {
    case Verdict::done:
      ++counts_.packets;
      executed_.note(packet, takes_);
      expected_ = expected_ + takes_;
      negative_.reset();
      if (packet.bth.ack_request && !answered_by_data(operation)) ack_owed_ = true;
      return;
    case Verdict::rnr:
      negative_ = static_cast<std::uint8_t>(wire::rnr_nak | (attributes_.min_rnr_timer & 31));
      silent_ = true;  // what follows is not early: it waits for the same receive
      return;
    case Verdict::lost:
      ++counts_.dropped;
      return;
    default:
      fatal_ = {psn, syndrome_of(verdict)};
      negative_ = fatal_->syndrome;
  }
}

// A peer asks again from its oldest request on that was not answered. In front of ours there may be all the
// READs that it may have outstanding, and we remember as many. IBA 9.7.5.1.3 would have what is ahead by less
// than half of all PSNs refused; a READ that long whose request is lost is found by the peer's timer instead.
bool Responder::is_outside(Psn psn) const {
  constexpr std::int64_t half = 1 << 23;
  const std::int64_t ahead = psn - expected_;
  if (ahead >= 0) return ahead > widest_window;
  std::int64_t reaches_back = widest_window;
  for (const Remembered& each : remembered_) reaches_back += each.packets;
  return -ahead > std::min(reaches_back, half);
}

Verdict Responder::execute(const wire::Packet& packet, Operation operation) {
  const bool begun = message_.kind != Kind::none;
  if (attributes_.service == wire::Service::xrc) {
    if (begun && packet.srqn != message_.srqn) return refused();
    if (const Verdict verdict = target_.select(packet.srqn); verdict != Verdict::done) return verdict;
  }
  if (operation == Operation::read_request && !begun) return take_read(packet);
  if (is_atomic(operation) && !begun) return take_atomic(packet, operation);
  if (!in_sequence(packet, operation)) return refused();
  if (is_first(operation) || is_only(operation)) {
    const Verdict verdict = begin(packet, is_write(operation) ? Kind::write : Kind::send, is_only(operation));
    if (verdict != Verdict::done) return verdict;
  }
  return take_message(packet, operation);
}

Verdict Responder::refused() {
  target_.refuse(Verdict::nak_invalid);
  return Verdict::nak_invalid;
}

// Whether a packet continues the message and is as long as its place in the message demands.
bool Responder::in_sequence(const wire::Packet& packet, Operation operation) const {
  if (answered_by_data(operation)) return false;
  const std::size_t size = packet.payload.size(), mtu = attributes_.path_mtu;
  const bool full = is_first(operation) || is_middle(operation);
  if (full ? size != mtu : size > mtu || (size == 0 && !is_only(operation))) return false;
  const Kind kind = is_write(operation) ? Kind::write : Kind::send;
  const bool opens = is_first(operation) || is_only(operation);
  if (message_.kind == Kind::none) return opens;
  return message_.kind == kind && opens == (message_.first == Psn(packet.bth.psn));
}

// A FIRST or ONLY packet that is sent again because the target was not ready has already begun.
Verdict Responder::begin(const wire::Packet& packet, Kind kind, bool only) {
  const Psn psn(packet.bth.psn);
  if (message_.kind == kind && message_.first == psn) return Verdict::done;
  const std::uint64_t length = packet.reth.length, here = packet.payload.size();
  if (kind == Kind::write) {
    const bool sound = length <= longest_message && (only ? length == here : length > here);
    if (!sound) return refused();
  }
  const Verdict verdict = kind == Kind::send
                              ? target_.begin_send()
                              : target_.begin_write(packet.reth.addr, packet.reth.rkey, packet.reth.length);
  if (verdict == Verdict::done) message_ = {kind, psn, 0, length, packet.srqn};
  return verdict;
}

Verdict Responder::take_message(const wire::Packet& packet, Operation operation) {
  const std::uint64_t behind = message_.offset + packet.payload.size();
  const bool ends = !is_first(operation) && !is_middle(operation);
  if (message_.kind == Kind::write && (ends ? behind != message_.length : behind >= message_.length))
    return refused();
  if (!packet.payload.empty()) {
    const Verdict verdict = target_.append(message_.offset, packet.payload);
    if (verdict != Verdict::done) return verdict;
  }
  if (!ends) {
    message_.offset = behind;
    return Verdict::done;
  }
  Ending ending;
  if (carries_imm(operation)) ending.imm_be = wire::swap_network(packet.imm);
  if (invalidates(operation)) ending.invalidate = packet.invalidate;
  ending.solicited = packet.bth.solicited;
  ending.byte_len = behind;
  const Verdict verdict = target_.finish(ending);
  if (verdict != Verdict::done) return verdict;
  message_ = {};
  ++msn_;
  return Verdict::done;
}

Verdict Responder::take_read(const wire::Packet& packet) {
  const wire::Reth& asked = packet.reth;
  const auto unsent =
      std::ranges::count_if(responses_, [](const Response& response) { return !response.replay; });
  if (asked.length > longest_message || unsent >= attributes_.max_dest_rd_atomic) return refused();
  const Verdict verdict = target_.check_read(asked.addr, asked.rkey, asked.length);
  if (verdict != Verdict::done) return verdict;
  const std::uint32_t mtu = attributes_.path_mtu;
  takes_ = std::max<std::uint32_t>(1, asked.length / mtu + (asked.length % mtu != 0));
  remember({Operation::read_request, Psn(packet.bth.psn), takes_, asked.addr, asked.rkey, asked.length, 0,
            packet.srqn});
  ++msn_;
  return Verdict::done;
}

Verdict Responder::take_atomic(const wire::Packet& packet, Operation operation) {
  Verdict verdict = Verdict::nak_invalid;
  Remembered remembered{operation, Psn(packet.bth.psn), 1, 0, 0, 0, 0, packet.srqn};
  if (operation == Operation::atomic_write) {
    if (packet.reth.length != atomic_bytes || packet.payload.size() != atomic_bytes)
      target_.refuse(verdict);
    else
      verdict =
          target_.atomic_write(packet.reth.addr, packet.reth.rkey, packet.payload.first<atomic_bytes>());
  } else if (attributes_.max_dest_rd_atomic == 0) {
    target_.refuse(verdict);
  } else {
    const bool swaps = operation == Operation::compare_swap;
    const wire::AtomicEth& a = packet.atomic;
    verdict =
        target_.atomic(swaps ? SendOpcode::compare_and_swap : SendOpcode::fetch_and_add, a.addr, a.rkey,
                       swaps ? a.compare : a.swap_or_add, swaps ? a.swap_or_add : 0, remembered.original);
  }
  if (verdict != Verdict::done) return verdict;
  remember(remembered);
  ++msn_;
  return Verdict::done;
}

// Answers the request, and keeps it for replay until as many others followed as may be outstanding.
void Responder::remember(const Remembered& request) {
  remembered_.push_back(request);
  if (remembered_.size() > std::max<std::size_t>(attributes_.max_dest_rd_atomic, 1)) remembered_.pop_front();
  responses_.push_back({request});
  ack_owed_ = false;  // the response acknowledges as well
}

// IBA 9.7.5.1.4: acknowledge the duplicate, replay it, or drop it if it is no longer remembered.
void Responder::duplicate(const wire::Packet& packet, Operation operation) {
  const bool reads = operation == Operation::read_request;
  if (!reads && executed_.contradicts(packet, expected_)) {
    ++counts_.outside;
    return;
  }
  ++counts_.duplicates;
  if (!reads && !is_atomic(operation)) {
    ack_owed_ = true;
    return;
  }
  const Psn psn(packet.bth.psn);
  const auto found = std::ranges::find_if(remembered_, [&](const Remembered& each) {
    return each.operation == operation && psn >= each.first && psn < each.first + each.packets;
  });
  const std::size_t most_responses =
      2 * std::size_t{std::max<std::uint8_t>(attributes_.max_dest_rd_atomic, 1)};
  if (found == remembered_.end() || responses_.size() >= most_responses) {
    ++counts_.dropped;
    return;
  }
  Remembered again = *found;
  if (reads) {
    const auto skipped = static_cast<std::uint32_t>(psn - found->first);
    const std::uint64_t offset = std::uint64_t{skipped} * attributes_.path_mtu;
    const wire::Reth& asked = packet.reth;
    if (asked.addr != found->addr + offset || asked.rkey != found->rkey || packet.srqn != found->srqn) {
      ++counts_.dropped;
      return;
    }
    // If the request reaches beyond the original (a probe asked for less), answer the part that exists.
    again.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(asked.length, found->length - offset));
    const std::uint32_t mtu = attributes_.path_mtu;
    again.packets = std::max<std::uint32_t>(1, again.length / mtu + (again.length % mtu != 0));
    again.first = psn;
    again.addr = asked.addr;
  }
  ++counts_.replays;
  responses_.push_back({again, 0, true});
}

}  // namespace weir::rnic::packet
