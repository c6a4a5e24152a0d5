// The requester's send path: chooses the next packet and builds it.
#include <algorithm>

#include "rnic/packet/message_opcodes.hpp"
#include "rnic/packet/requester.hpp"
#include "wire/byte_order.hpp"

namespace weir::rnic::packet {
namespace {

using wire::Operation;

// A long READ is sent as several requests. Each fits into our receive buffer and can be repeated by itself.
// Their borders are the same on every attempt.
constexpr std::uint32_t read_request_bytes = 64 * 1024;
constexpr std::uint32_t most_packets_without_ack = 16;
constexpr std::int32_t most_outstanding_psns = 1 << 22;  // half of what the PSN window allows

bool is_read_or_atomic(SendOpcode opcode) {
  return opcode == SendOpcode::rdma_read || opcode == SendOpcode::compare_and_swap ||
         opcode == SendOpcode::fetch_and_add || opcode == SendOpcode::atomic_write;
}

bool is_local(SendOpcode opcode) {
  return opcode == SendOpcode::local_invalidate || opcode == SendOpcode::bind_window;
}

}  // namespace

bool Requester::next_packet(std::uint64_t now_ns, Outgoing& out) {
  const bool waited_to_repeat = waits_to_repeat();
  stop_waiting();
  paced_until_ns_.reset();
  window_.advance(now_ns);
  if (rnr_until_ns_) on_time(now_ns);
  if (failed_ || rnr_until_ns_) return false;
  if (probe_.wanted) {
    probe_.wanted = false;
    if (una_ < next_ && send_probe(out)) return true;
  }
  if (failed_ || !find_next(now_ns)) return false;
  const Outstanding& wqe = at(sending_);
  if (!may_send(wqe)) return false;

  const auto index = static_cast<std::uint32_t>(next_ - wqe.first);
  const bool reads = wqe.answer != Answer::acknowledgement;
  const std::uint32_t packets =
      wqe.answer == Answer::data ? std::min(packets_of_read(index), wqe.packets - index) : 1;
  const std::uint64_t charged = charge_of(wqe, index, index + packets);
  in_flight_ += charged;
  turn_left_ -= std::min(turn_left_, charged);
  window_.sent(static_cast<std::uint32_t>(charged));
  asked_.awaited = asked_.awaited || (sending_wqe_.request.signaled && index + 1 == wqe.packets);
  const bool ack = reads || wants_ack(now_ns, wqe, index);
  emit(sending_, index, packets, out, ack);
  out.retransmitted = next_ < beyond_;
  if (una_ == beyond_ || waited_to_repeat) since_ns_ = probed_ns_ = now_ns;  // the first on its way
  if (ack && !out.retransmitted && !timed_psn_) {
    timed_psn_ = next_;
    timed_ns_ = now_ns;
  }
  next_ = next_ + packets;
  if (ack && !is_asked()) probed_ns_ = now_ns;  // silence counts from here
  asked_.sent(ack, next_);
  if (reads) unanswered_.push_back(Psn(next_.value() - 1));
  if (next_ > beyond_) beyond_ = next_;
  ++counts_.packets;
  if (out.retransmitted) ++counts_.retransmitted;
  return true;
}

// Finds the WQE of next_. Begins a new one if all begun WQEs are sent.
bool Requester::find_next(std::uint64_t now_ns) {
  for (;;) {
    if (static_cast<std::int32_t>(sending_ - completed_) < 0) sending_ = completed_;
    if (sending_ == begun_) {
      if (!begin_next(now_ns)) return false;
      continue;
    }
    Outstanding& wqe = at(sending_);
    if (wqe.status != WcStatus::success) return false;
    if (static_cast<std::uint32_t>(next_ - wqe.first) >= wqe.packets) {
      ++sending_;
      continue;
    }
    const WcStatus status = load(sending_wqe_, sending_);
    if (status == WcStatus::success) return true;
    wqe.status = status;  // its memory or key is gone
    retire();
    return false;
  }
}

bool Requester::begin_next(std::uint64_t now_ns) {
  if (source_.posted() == begun_) return false;
  if (pacer_.due_ns() > now_ns) {
    paced_until_ns_ = pacer_.due_ns();
    return false;
  }
  const WcStatus status = load(sending_wqe_, begun_);
  if (status != WcStatus::success) {
    push({next_, 0, 0, Answer::none, status});
    retire();
    return !failed_;
  }
  const WorkRequest& request = sending_wqe_.request;
  if (request.fence && !unanswered_.empty()) return false;
  const std::uint64_t bytes = sending_wqe_.pieces.bytes;
  if (is_local(request.opcode)) {
    push({next_, 0, 0, Answer::none, source_.execute_local(begun_)});
    retire();
    return !failed_;
  }
  Answer answer = Answer::acknowledgement;
  if (request.opcode == SendOpcode::rdma_read)
    answer = Answer::data;
  else if (is_read_or_atomic(request.opcode))
    answer = Answer::atomic;
  const std::uint64_t mtu = attributes_.path_mtu;
  const std::uint64_t packets =
      answer == Answer::atomic ? 1 : std::max<std::uint64_t>(1, (bytes + mtu - 1) / mtu);
  push({next_, static_cast<std::uint32_t>(packets), bytes, answer, WcStatus::success});
  if (answer == Answer::acknowledgement && pacer_.limits()) pacer_.sent(bytes, now_ns);
  return true;
}

bool Requester::may_send(const Outstanding& wqe) {
  // After an RNR NAK send only one packet; those behind it would be dropped.
  if (rnr_retries_ != 0 && next_ != una_) return false;
  if (wqe.answer != Answer::acknowledgement && unanswered_.size() >= attributes_.max_rd_atomic) return false;
  if (next_ - una_ > most_outstanding_psns) return false;
  // What is sent again was admitted before.
  const bool again = next_ < beyond_;
  if (window_.open() && (again || !others_are_next())) return true;
  waits_for_window_ = true;
  window_.begin_waiting();
  return false;
}

bool Requester::others_are_next() const { return turn_left_ == 0 && window_.waiting() != 0; }

// An acknowledgement is worth its packet when somebody waits for it and no later packet would soon ask for
// one, and often enough to move the window.
bool Requester::wants_ack(std::uint64_t now_ns, const Outstanding& wqe, std::uint32_t index) const {
  if (asked_.packets_since + 1 >= most_packets_without_ack || rnr_retries_ != 0) return true;
  if (!window_.open() || others_are_next()) return true;
  const bool is_last = index + 1 == wqe.packets && (pacer_.limits() || source_.posted() == sending_ + 1);
  if (!is_last) return false;
  const bool spares_probe = una_ < next_ && now_ns - since_ns_ >= unasked_ns() / 2;
  return asked_.awaited || spares_probe || next_ < beyond_ || asks_always();
}

std::uint32_t Requester::packets_of_read(std::uint32_t index) const {
  const std::uint32_t in_request = read_request_bytes / attributes_.path_mtu;
  return in_request - index % in_request;
}

std::uint32_t Requester::payload_of(const Outstanding& wqe, std::uint32_t index) const {
  const std::uint64_t offset = std::uint64_t{index} * attributes_.path_mtu;
  if (wqe.answer == Answer::atomic) return atomic_bytes;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(attributes_.path_mtu, wqe.bytes - offset));
}

// What packets [from, to) cost the window. For a READ, the packets are those of its response.
std::uint64_t Requester::charge_of(const Outstanding& wqe, std::uint32_t from, std::uint32_t to) const {
  if (from >= to) return 0;
  const bool with_last = to == wqe.packets;
  const std::uint64_t whole = to - from - (with_last ? 1 : 0);
  const std::uint64_t last = with_last ? Window::charge(payload_of(wqe, to - 1)) : 0;
  return whole * Window::charge(attributes_.path_mtu) + last;
}

// Sends the oldest packet again; of a READ, asks for a single response packet.
bool Requester::send_probe(Outgoing& out) {
  Outstanding& oldest = at(completed_);
  if (oldest.status != WcStatus::success) return false;
  if (const WcStatus status = load(sending_wqe_, completed_); status != WcStatus::success) {
    oldest.status = status;
    retire();
    return false;
  }
  emit(completed_, static_cast<std::uint32_t>(una_ - oldest.first), 1, out, true);
  probe_.of = una_;
  out.retransmitted = true;
  ++counts_.probes;
  ++counts_.packets;
  ++counts_.retransmitted;
  return true;
}

// `packets` is the number of response packets of a READ.
void Requester::emit(std::uint32_t number, std::uint32_t index, std::uint32_t packets, Outgoing& out,
                     bool ack) {
  const Outstanding& wqe = at(number);
  const WorkRequest& request = sending_wqe_.request;
  const std::uint64_t offset = std::uint64_t{index} * attributes_.path_mtu;
  wire::Packet packet;
  Operation operation{};
  std::uint32_t payload = 0;
  switch (request.opcode) {
    case SendOpcode::rdma_read: {
      operation = Operation::read_request;
      const std::uint64_t asked =
          std::min<std::uint64_t>(wqe.bytes - offset, std::uint64_t{packets} * attributes_.path_mtu);
      packet.reth = {request.remote_addr + offset, request.rkey, static_cast<std::uint32_t>(asked)};
      break;
    }
    case SendOpcode::fetch_and_add:
      operation = Operation::fetch_add;
      packet.atomic = {request.remote_addr, request.rkey, request.compare_add, 0};
      break;
    case SendOpcode::compare_and_swap:
      operation = Operation::compare_swap;
      packet.atomic = {request.remote_addr, request.rkey, request.swap, request.compare_add};
      break;
    case SendOpcode::atomic_write:
      operation = Operation::atomic_write;
      packet.reth = {request.remote_addr, request.rkey, atomic_bytes};
      payload = atomic_bytes;
      break;
    default: {
      const bool last = index + 1 == wqe.packets;
      operation = operation_of(request.opcode, index == 0, last);
      payload = payload_of(wqe, index);
      packet.reth = {request.remote_addr, request.rkey, static_cast<std::uint32_t>(wqe.bytes)};
      packet.imm = wire::swap_network(request.imm_be);
      packet.invalidate = request.imm_be;
      packet.bth.solicited = last && request.solicited && request.opcode != SendOpcode::rdma_write;
    }
  }
  packet.bth.opcode = wire::opcode(attributes_.service, operation);
  packet.srqn = request.srqn;
  packet.bth.ack_request = ack;
  packet.bth.pkey = attributes_.pkey;
  packet.bth.destination = attributes_.destination;
  out.psn = wqe.first + index;
  packet.bth.psn = out.psn.value();
  out.header_bytes = static_cast<std::uint8_t>(wire::encode_headers(packet, payload, out.header));
  out.pad = wire::pad_of(payload);
  out.payload_bytes = payload;
  out.wqe = number;
  out.is_ours = sending_wqe_.pieces.is_ours;
  out.pieces = 0;
  if (payload != 0) gather_payload(sending_wqe_, offset, payload, out);
}

void Requester::gather_payload(LookedUp& from, std::uint64_t offset, std::uint32_t bytes, Outgoing& out) {
  if (offset != from.offset) {
    from.offset = from.in_piece = from.piece = 0;
    while (from.offset < offset) {
      const std::uint64_t step =
          std::min<std::uint64_t>(from.pieces.pieces[from.piece].iov_len, offset - from.offset);
      from.offset += step;
      if (step == from.pieces.pieces[from.piece].iov_len)
        ++from.piece;
      else
        from.in_piece = step;
    }
  }
  from.offset += bytes;
  for (std::uint64_t left = bytes; left > 0;) {
    const iovec& piece = from.pieces.pieces[from.piece];
    const std::uint64_t part = std::min<std::uint64_t>(left, piece.iov_len - from.in_piece);
    if (part != 0) out.room[out.pieces++] = {static_cast<std::byte*>(piece.iov_base) + from.in_piece, part};
    left -= part;
    from.in_piece += part;
    if (from.in_piece == piece.iov_len) {
      ++from.piece;
      from.in_piece = 0;
    }
  }
}

}  // namespace weir::rnic::packet
