// The requester's core: the WQEs that it has begun, and its timers.
#include "rnic/packet/requester.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "rnic/packet/rnr_timer.hpp"

namespace weir::rnic::packet {
namespace {

constexpr std::size_t first_ring = 16;
constexpr std::uint64_t first_probe_ns = 4'000'000;  // until a round trip was measured
constexpr std::uint64_t least_probe_ns = 1'000'000, longest_probe_ns = 128'000'000;
// Silence of a peer that was asked for nothing.
constexpr std::uint64_t longest_unasked_ns = 10'000'000;
constexpr std::uint32_t most_doublings = 7;
// A run of packets as long as the kernel takes them: shorter turns cost more calls, longer ones more waiting.
constexpr std::uint64_t turn_bytes = 64 * 1024;

}  // namespace

Requester::Requester(SendSource& source, Window& window, const RequesterAttributes& attributes)
    : source_(source),
      window_(window),
      attributes_(attributes),
      ring_(first_ring),
      una_(attributes.first_psn),
      next_(attributes.first_psn),
      beyond_(attributes.first_psn),
      asked_{.beyond = attributes.first_psn} {
  pacer_.set(attributes.rate);
}

Requester::~Requester() {
  stop_waiting();
  window_.left(in_flight_);
}

// ---- turns

void Requester::begin_turn() {
  if (turn_left_ == 0) turn_left_ = turn_bytes;
}

void Requester::stop_waiting() {
  if (std::exchange(waits_for_window_, false)) window_.end_waiting();
}

void Requester::set(const RequesterAttributes& attributes) {
  attributes_.timeout = attributes.timeout;
  attributes_.retry_cnt = attributes.retry_cnt;
  attributes_.rnr_retry = attributes.rnr_retry;
  attributes_.max_rd_atomic = attributes.max_rd_atomic;
  if (attributes_.rate != attributes.rate) pacer_.set(attributes_.rate = attributes.rate);
}

// The ring grows at most to the depth of the send queue, which bounds the number of begun WQEs.
void Requester::push(const Outstanding& outstanding) {
  if (begun_ - completed_ == ring_.size()) {
    std::vector<Outstanding> wider(ring_.size() * 2);
    for (std::uint32_t wqe = completed_; wqe != begun_; ++wqe) wider[wqe & (wider.size() - 1)] = at(wqe);
    ring_ = std::move(wider);
  }
  at(begun_++) = outstanding;
}

WcStatus Requester::load(LookedUp& into, std::uint32_t wqe) {
  if (into.wqe == wqe) return WcStatus::success;
  into.wqe.reset();
  into.pieces.count = 0;
  into.pieces.bytes = 0;
  into.pieces.is_ours = false;
  into.offset = into.in_piece = into.piece = 0;
  const WcStatus status = source_.look_up(wqe, into.request, into.pieces);
  if (status == WcStatus::success) into.wqe = wqe;
  return status;
}

// ---- timers

// With a timeout as short as that, whoever set it wants losses found at once.
bool Requester::asks_always() const { return unasked_ns() < least_probe_ns; }

// Well before the timeout of the specification, which must not end what nobody asked for.
std::uint64_t Requester::unasked_ns() const {
  if (attributes_.timeout == 0) return longest_unasked_ns;
  return std::min(longest_unasked_ns, ack_timeout_ns(attributes_.timeout) / 4);
}

std::uint64_t Requester::probe_after_ns() const {
  if (probes_ == 0 && !is_asked()) return std::max(unasked_ns(), 2 * smoothed_rtt_ns_);
  const std::uint64_t once =
      smoothed_rtt_ns_ == 0 ? first_probe_ns : std::max(2 * smoothed_rtt_ns_, least_probe_ns);
  return std::min(once << std::min(probes_, most_doublings), std::max(longest_probe_ns, once));
}

std::optional<std::uint64_t> Requester::deadline_ns() const {
  if (failed_) return std::nullopt;
  if (rnr_until_ns_) return rnr_until_ns_;
  if (una_ == beyond_ || waits_to_repeat()) return paced_until_ns_;
  std::uint64_t deadline = probed_ns_ + probe_after_ns();
  if (paced_until_ns_) deadline = std::min(deadline, *paced_until_ns_);
  if (attributes_.timeout != 0)
    deadline = std::min(deadline, since_ns_ + ack_timeout_ns(attributes_.timeout));
  if (resend_ns_) deadline = std::min(deadline, *resend_ns_);
  return deadline;
}

void Requester::on_time(std::uint64_t now_ns) {
  if (failed_) return;
  if (rnr_until_ns_) {
    if (now_ns < *rnr_until_ns_) return;
    rnr_until_ns_.reset();
    since_ns_ = probed_ns_ = now_ns;
    return;
  }
  if (una_ == beyond_ || waits_to_repeat()) return;
  if (attributes_.timeout != 0 && now_ns >= since_ns_ + ack_timeout_ns(attributes_.timeout)) {
    ++counts_.timeouts;
    if (retries_ >= attributes_.retry_cnt) return fail(WcStatus::retry_exc_err);
    ++retries_;
    since_ns_ = now_ns;
    lost(now_ns);
  } else if (resend_ns_ && now_ns >= *resend_ns_) {
    // Of what had left before the probe nothing had arrived: the answer told of the probe alone.
    if (una_ == probe_.of + 1 && beyond_ - una_ > 1) window_.runs.lost(now_ns);
    lost(now_ns);
  } else if (now_ns >= probed_ns_ + probe_after_ns()) {
    ++probes_;
    probed_ns_ = now_ns;
    // Rewound packets wait for the window or their turn, and are sent anyway.
    if (una_ < next_) {
      probe_.wanted = true;
      probe_.reaches = next_;
    }
  }
}

// Sends everything unanswered again.
void Requester::lost(std::uint64_t now_ns) {
  window_.lost(now_ns, std::max(smoothed_rtt_ns_, least_probe_ns));
  rewind();
  probed_ns_ = now_ns;
}

void Requester::rewind() {
  window_.left(in_flight_);
  in_flight_ = 0;
  next_ = una_;
  sending_ = completed_;
  unanswered_.clear();
  timed_psn_.reset();
  probe_.reaches.reset();
  resend_ns_.reset();
  probe_.wanted = false;
}

void Requester::give_up() {
  failed_ = true;
  stop_waiting();
  window_.left(in_flight_);
  in_flight_ = 0;
}

// Fails the oldest WQE and thereby the queue.
void Requester::fail(WcStatus status) {
  give_up();
  const std::uint32_t wqe = completed_++;
  source_.complete(wqe, status, 0);
}

}  // namespace weir::rnic::packet
