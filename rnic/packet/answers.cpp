// The requester's receive path: acknowledgements, READ responses and atomics' old values; what they complete,
// and which losses they reveal.
#include <algorithm>
#include <cstring>

#include "rnic/packet/requester.hpp"
#include "rnic/packet/rnr_timer.hpp"

namespace weir::rnic::packet {
namespace {

using wire::Operation;

constexpr std::uint64_t least_resend_ns = 200'000;

// The upper bits of a syndrome give its kind (IBA table 44).
enum class Syndrome : std::uint8_t { ack = 0, rnr_nak = 1, nak = 3 };
constexpr std::uint8_t sequence_error = 0;

WcStatus status_of_nak(std::uint8_t code) {
  switch (code) {
    case wire::nak_remote_access:
      return WcStatus::rem_access_err;
    case wire::nak_remote_operational:
      return WcStatus::rem_op_err;
    default:
      return WcStatus::rem_inv_req_err;
  }
}

}  // namespace

void Requester::receive(std::uint64_t now_ns, const wire::Packet& packet) {
  if (failed_) return;
  const Psn psn(packet.bth.psn);
  const bool of_ours = packet.bth.opcode >> 5 == static_cast<unsigned>(attributes_.service);
  if (!of_ours || psn < una_ || psn >= beyond_) {  // a duplicate, or an answer to nothing
    ++counts_.stray;
    return;
  }
  switch (static_cast<Operation>(packet.bth.opcode & 31)) {
    case Operation::acknowledge:
      return take_acknowledge(now_ns, packet);
    case Operation::read_response_first:
    case Operation::read_response_middle:
    case Operation::read_response_last:
    case Operation::read_response_only:
    case Operation::atomic_acknowledge:
      return take_data(now_ns, packet);
    default:
      ++counts_.stray;
  }
}

void Requester::take_acknowledge(std::uint64_t now_ns, const wire::Packet& packet) {
  const Psn psn(packet.bth.psn);
  const std::uint8_t value = packet.aeth.syndrome & 31;
  switch (static_cast<Syndrome>(packet.aeth.syndrome >> 5)) {
    case Syndrome::ack:
      return acknowledge_before(now_ns, psn + 1);
    case Syndrome::rnr_nak:
      ++counts_.rnr_naks;
      acknowledge_before(now_ns, psn);
      if (!failed_ && una_ == psn) rnr(now_ns, value);
      return;
    case Syndrome::nak:
      if (value == sequence_error) {
        ++counts_.sequence_naks;
        acknowledge_before(now_ns, psn);
        if (failed_ || una_ != psn || rewound_at_ == una_) return;
        lost(now_ns);
        rewound_at_ = una_;
        return;
      }
      ++counts_.fatal_naks;
      acknowledge_before(now_ns, psn);
      // A READ or atomic before it whose answer was lost is asked for again, and the refused request after
      // it.
      if (!failed_ && una_ == psn && una_ != beyond_) fail(status_of_nak(value));
      return;
  }
  ++counts_.stray;
}

// Everything before `end` has arrived. If that includes a READ or atomic without its
// answer, that answer was lost.
void Requester::acknowledge_before(std::uint64_t now_ns, Psn end) {
  Psn to = una_;
  for (std::uint32_t wqe = completed_; wqe != begun_ && to < end; ++wqe) {
    const Outstanding& each = at(wqe);
    if (each.answer == Answer::data || each.answer == Answer::atomic) break;
    to = each.first + each.packets;
  }
  if (to > end) to = end;
  if (to > una_) answered(now_ns, to);
  if (failed_ || una_ >= end || rewound_at_ == una_) return;
  ++counts_.implied_naks;
  lost(now_ns);
  rewound_at_ = una_;
}

// The payload of a READ response, or an atomic's old value. The PSN decides, because a responder that answers
// part of a READ again may begin it with any opcode.
void Requester::take_data(std::uint64_t now_ns, const wire::Packet& packet) {
  const Psn psn(packet.bth.psn);
  acknowledge_before(now_ns, psn);
  if (failed_ || una_ != psn || completed_ == begun_) return;
  const std::uint32_t wqe = completed_;
  const Outstanding& asked = at(wqe);
  const bool atomic = static_cast<Operation>(packet.bth.opcode & 31) == Operation::atomic_acknowledge;
  if (asked.answer == Answer::acknowledgement || asked.status != WcStatus::success) {
    ++counts_.stray;
    return;
  }
  if (const WcStatus status = load(answered_wqe_, wqe); status != WcStatus::success) return fail(status);
  const bool writes = answered_wqe_.request.opcode == SendOpcode::atomic_write;
  const std::uint32_t index = static_cast<std::uint32_t>(psn - asked.first);
  const std::size_t expected =
      asked.answer == Answer::data ? payload_of(asked, index) : 0;  // an atomic's is in a header
  if (atomic != (asked.answer == Answer::atomic && !writes) || packet.payload.size() != expected) {
    ++counts_.stray;
    return;
  }
  std::array<std::byte, atomic_bytes> original;
  std::span<const std::byte> bytes = packet.payload;
  if (atomic) {
    std::memcpy(original.data(), &packet.original, sizeof original);
    bytes = original;
  }
  const std::uint64_t offset = std::uint64_t{index} * attributes_.path_mtu;
  if (!bytes.empty() && !source_.scatter(wqe, answered_wqe_.pieces, offset, bytes))
    return fail(WcStatus::loc_prot_err);
  answered(now_ns, psn + 1);
}

// Moves una_ up to `end`.
void Requester::answered(std::uint64_t now_ns, Psn end) {
  if (end - una_ > 1) window_.runs.arrived();
  std::uint64_t charged = 0;
  for (std::uint32_t wqe = completed_; wqe != begun_ && una_ < end; ++wqe) {
    const Outstanding& each = at(wqe);
    const auto from = static_cast<std::uint32_t>(una_ - each.first);
    const auto to = std::min(static_cast<std::uint32_t>(end - each.first), each.packets);
    // Rewound packets are no longer charged.
    const std::int32_t sent = next_ - each.first;
    if (sent > 0) charged += charge_of(each, from, std::min(to, static_cast<std::uint32_t>(sent)));
    una_ = each.first + to;
  }
  if (una_ > next_) next_ = una_;
  charged = std::min(charged, in_flight_);
  in_flight_ -= charged;
  window_.left(charged);
  window_.acknowledged(charged, now_ns, smoothed_rtt_ns_);
  while (!unanswered_.empty() && unanswered_.front() < una_) unanswered_.pop_front();
  if (timed_psn_ && *timed_psn_ < una_) {
    const std::uint64_t round_trip = now_ns - timed_ns_;
    smoothed_rtt_ns_ = smoothed_rtt_ns_ == 0 ? round_trip : (7 * smoothed_rtt_ns_ + round_trip) / 8;
    timed_psn_.reset();
  }
  since_ns_ = probed_ns_ = now_ns;
  probes_ = retries_ = rnr_retries_ = 0;
  probe_.wanted = false;
  rewound_at_.reset();
  rnr_until_ns_.reset();
  resend_ns_.reset();
  // The answer to a probe tells how far the responder was. If nothing follows, later packets were lost.
  if (probe_.reaches && una_ < *probe_.reaches)
    resend_ns_ = now_ns + std::max(smoothed_rtt_ns_, least_resend_ns);
  else
    probe_.reaches.reset();
  retire();
}

// Completes finished WQEs in order.
void Requester::retire() {
  while (completed_ != begun_ && !failed_) {
    const Outstanding& oldest = at(completed_);
    if (oldest.status != WcStatus::success) return fail(oldest.status);
    if (una_ - oldest.first < static_cast<std::int32_t>(oldest.packets)) return;
    const std::uint64_t bytes = oldest.bytes;
    source_.complete(completed_++, WcStatus::success, bytes);
  }
}

void Requester::rnr(std::uint64_t now_ns, std::uint8_t timer) {
  if (rnr_until_ns_) return;  // a duplicate
  if (attributes_.rnr_retry != rnr_retry_for_ever && rnr_retries_ >= attributes_.rnr_retry)
    return fail(WcStatus::rnr_retry_exc_err);
  ++rnr_retries_;
  rewind();
  rnr_until_ns_ = now_ns + rnr_timer_ns(timer);
}

void Requester::unreadable(const Outgoing& packet, WcStatus status) {
  if (failed_ || static_cast<std::int32_t>(packet.wqe - completed_) < 0) return;
  at(packet.wqe).status = status;
  retire();
}

}  // namespace weir::rnic::packet
