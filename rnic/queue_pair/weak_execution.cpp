// `weir run --weak`: how a send queue is executed by a NIC that does whatever it may.
//
// Each part of a request (reading its memory, executing it at the target, landing what comes back, completing
// it) is done when the model allows it (rnic/weak/ordering.hpp) and it is due by choice (rnic/weak/requests).
// An outcome that is not success, and everything behind it, is handled as on the normal path: first all
// requests before it are completed, so that it is the next one of the send queue. Nothing here is called
// without --weak.
#include <algorithm>

#include "rnic/memory/copy.hpp"
#include "rnic/queue_pair/local_work.hpp"
#include "rnic/queue_pair/requester.hpp"

namespace weir::rnic {
namespace {

using weak::Kind;
using weak::Step;
using weak::Weakness;

Kind kind_of(SendOpcode opcode) {
  if (is_local(opcode)) return Kind::local;
  if (opcode == SendOpcode::rdma_read) return Kind::reads;
  return brings_data_back(opcode) ? Kind::atomic : Kind::gives;
}

bool is_write_or_read(SendOpcode opcode) {
  return opcode == SendOpcode::rdma_write || opcode == SendOpcode::rdma_write_with_imm ||
         opcode == SendOpcode::rdma_read;
}

Gather gather_of(std::byte* at, std::uint64_t bytes) {
  Gather one;
  one.pieces[0] = {at, bytes};
  one.count = bytes == 0 ? 0 : 1;
  one.bytes = bytes;
  one.is_ours = true;
  return one;
}

// Copies bytes [offset, offset + bytes) of a message to where they belong in its pieces.
void scatter_part(const std::byte* message, const weak::Part& part, std::span<const iovec> pieces) {
  std::uint64_t begin = 0;
  for (const iovec& piece : pieces) {
    const std::uint64_t from = std::max(begin, part.offset);
    const std::uint64_t to = std::min(begin + piece.iov_len, part.offset + part.bytes);
    if (from < to)
      std::memcpy(static_cast<std::byte*>(piece.iov_base) + (from - begin), message + from, to - from);
    begin += piece.iov_len;
  }
}

void spin(std::uint32_t times) {
  for (std::uint32_t i = 0; i < times; ++i) cpu_relax();
}

}  // namespace

void Requester::execute_weakly() {
  weak_->look(qp_.nic.host.now_ns());
  admit_posted();
  if (under_way() && !retry_first()) return;
  if (qp_.state() != QpState::rts) return complete_begun();
  while (take_steps()) {
  }
  wait_by_choice();
}

void Requester::admit_posted() {
  if (weak_->empty()) weak_->forget(sends_.executed());
  for (std::uint32_t next = weak_->end(); next != sends_.doorbell(); ++next) {
    SendWqe& wqe = sends_.at(next);
    const bool connected = !is_datagram(qp_.config.type) && !over_packets_;
    weak_->admit({.kind = kind_of(wqe.opcode),
                  .fenced = wqe.fenced,
                  .may_be_split = connected && is_write_or_read(wqe.opcode),
                  .bytes = wqe.posted_bytes(),
                  .remote_addr = wqe.remote_addr});
  }
}

// The parked request is the first, because all before it were completed. True: it has executed, or pauses
// between two of its parts, and so waits by choice from now on.
bool Requester::retry_first() {
  for (;;) {
    const std::uint32_t first = weak_->first();
    const std::optional<Outcome> outcome = execute_weak(0);
    if (!outcome) {
      parked_ = Park::none;
      return true;
    }
    const bool goes_on = *outcome == Outcome::done || give_way_to(0, *outcome);
    if (*outcome != Outcome::done && weak_->first() == first) {
      if (!goes_on) return false;
      continue;
    }
    parked_ = Park::none;  // it has executed, or it is lost
    return true;
  }
}

// False: there is nothing to be done now.
bool Requester::take_steps() {
  for (std::size_t index = 0; index < weak_->size(); ++index) {
    switch (take_step(index)) {
      case Taken::nothing:
        break;
      case Taken::step:
        return true;
      case Taken::stopped:
        return false;
    }
  }
  return false;
}

Requester::Taken Requester::take_step(std::size_t index) {
  weak::Request& one = (*weak_)[index];
  if (weak_->may_take(index, Step::read_source) && weak_->due(one.read)) {
    read_source(index);
    return Taken::step;
  }
  if (weak_->may_take(index, Step::execute) && weak_->due(one.execute) && weak_->due(one.next_part)) {
    const std::optional<Outcome> outcome = execute_weak(index);
    if (!outcome) return Taken::nothing;
    if (*outcome == Outcome::done) return Taken::step;
    return give_way_to(index, *outcome) ? Taken::step : Taken::stopped;
  }
  if (one.sample_again && weak_->may_take(index, Step::sample_again) && index + 1 < weak_->size() &&
      (*weak_)[index + 1].progress.executed)
    sample_again(index);
  if (weak_->may_take(index, Step::land) && weak_->due(one.land))
    return land(index) ? Taken::step : Taken::stopped;
  if (!weak_->may_take(index, Step::complete)) return Taken::nothing;
  complete_first();
  return Taken::step;
}

// If the memory cannot be read, the execution finds the same error when it is the request's turn.
void Requester::read_source(std::size_t index) {
  weak::Request& one = (*weak_)[index];
  SendWqe& wqe = sends_.at(weak_->first() + static_cast<std::uint32_t>(index));
  one.progress.take(Step::read_source);
  if (!one.keeps) return;
  Gather pieces;
  if (prepare(qp_, wqe, pieces)) {
    one.keeps = false;
    return;
  }
  one.kept.resize(pieces.bytes);
  one.keeps = copied(pieces, {}, [&] { copy_gather(one.kept.data(), pieces.span()); }) == Outcome::done;
}

// nullopt: it pauses between two of its parts.
std::optional<Outcome> Requester::execute_weak(std::size_t index) {
  weak::Request& one = (*weak_)[index];
  SendWqe& wqe = sends_.at(weak_->first() + static_cast<std::uint32_t>(index));
  if (one.progress.kind == Kind::gives && !one.progress.source_read) read_source(index);
  std::optional<Outcome> outcome;
  if (!one.keeps || wqe.opcode == SendOpcode::atomic_write) {
    outcome = execute_one(wqe);
    one.progress.landed = *outcome == Outcome::done && one.progress.brings();
  } else {
    if (one.progress.brings() && one.kept.empty()) {
      Gather into;
      if (const auto error = prepare(qp_, wqe, into)) {
        wqe.status = *error;
        return Outcome::nak_operational;
      }
      one.kept.resize(into.bytes);
    }
    outcome = one.parts.empty() ? execute_whole(wqe, one) : move_parts(wqe, one);
  }
  if (outcome == Outcome::done) {
    one.progress.take(Step::execute);
    if (one.progress.brings() && !one.progress.landed) one.land = weak_->draw_landing();
  }
  return outcome;
}

Outcome Requester::execute_whole(SendWqe& wqe, weak::Request& one) {
  if (is_datagram(qp_.config.type) && weak_->loses_datagram()) {
    wqe.byte_len = static_cast<std::uint32_t>(one.kept.size());
    return Outcome::done;
  }
  return carry_out_weakly(wqe, gather_of(one.kept.data(), one.kept.size()));
}

// The target checks the whole range before the first part, so that a refused request moves nothing.
std::optional<Outcome> Requester::move_parts(SendWqe& wqe, weak::Request& one) {
  if (const Outcome reached = reach_target_weakly(wqe); reached != Outcome::done) return reached;
  const std::uint64_t bytes = one.kept.size();
  wqe.byte_len = static_cast<std::uint32_t>(bytes);
  if (one.moved == 0) {
    const Outcome taken = wqe.opcode == SendOpcode::rdma_read
                              ? target_.check_read(wqe.remote_addr, bytes, wqe.rkey)
                              : target_.check_write(wqe.remote_addr, bytes, wqe.rkey);
    if (taken != Outcome::done) return taken;
  }
  for (; one.moved != one.parts.size(); ++one.moved) {
    if (one.moved != 0) {
      const weak::Part& before = one.parts[one.moved - 1];
      spin(before.spins);
      if (before.stops && !one.pauses) {
        one.pauses = true;
        one.next_part = weak_->draw_pause();
      }
      if (!weak_->due(one.next_part)) return std::nullopt;
      one.pauses = false;
    }
    const Outcome moved = move_part(wqe, one, one.parts[one.moved]);
    if (moved != Outcome::done) return moved;
  }
  return Outcome::done;
}

Outcome Requester::move_part(SendWqe& wqe, weak::Request& one, const weak::Part& part) {
  const Gather piece = gather_of(one.kept.data() + part.offset, part.bytes);
  const std::uint64_t at = wqe.remote_addr + part.offset;
  if (wqe.opcode == SendOpcode::rdma_read) return target_.rdma_read(piece, at, wqe.rkey);
  const bool last = one.moved + 1 == one.parts.size();
  if (wqe.opcode == SendOpcode::rdma_write_with_imm && last)
    return write_with_imm_weakly(wqe, piece, at, one.kept.size());
  return target_.rdma_write(piece, at, wqe.rkey);
}

// The responder may answer a READ after it has executed later WRITEs. If the memory cannot be reached any
// more, the bytes of the first look stay.
void Requester::sample_again(std::size_t index) {
  weak::Request& one = (*weak_)[index];
  const SendWqe& wqe = sends_.at(weak_->first() + static_cast<std::uint32_t>(index));
  one.sample_again = false;
  if (!one.keeps || one.kept.empty() || over_packets_) return;
  iovec at{};
  if (target_.begin_read(wqe.remote_addr, one.kept.size(), wqe.rkey, at, true) != Outcome::done) return;
  const auto* from = static_cast<const std::byte*>(at.iov_base);
  std::vector<std::byte> sampled(one.kept.size());
  const Outcome copy = copied(gather_of(sampled.data(), sampled.size()), {from, at.iov_len},
                              [&] { std::memcpy(sampled.data(), from, at.iov_len); });
  target_.end_read();
  if (copy != Outcome::done) return;
  one.kept = std::move(sampled);
  weak_->tally().overtaken.fetch_add(1, std::memory_order_relaxed);
}

// False: its memory is not there any more, and the queue failed.
bool Requester::land(std::size_t index) {
  weak::Request& one = (*weak_)[index];
  SendWqe& wqe = sends_.at(weak_->first() + static_cast<std::uint32_t>(index));
  one.progress.take(Step::land);
  Gather into;
  std::optional<WcStatus> error = prepare(qp_, wqe, into);
  if (!error && into.bytes != one.kept.size()) error = WcStatus::loc_prot_err;
  if (!error) {
    const weak::Part whole{.bytes = one.kept.size()};
    const auto parts = one.parts.empty() ? std::span(&whole, 1) : std::span<const weak::Part>(one.parts);
    const Outcome copy = copied(into, {}, [&] {
      for (const weak::Part& part : parts) {
        scatter_part(one.kept.data(), part, into.span());
        spin(part.spins);
      }
    });
    if (copy == Outcome::done) return true;
    error = WcStatus::loc_prot_err;
  }
  if (complete_before(index)) fail(wqe, *error);
  return false;
}

void Requester::complete_first() {
  SendWqe& wqe = sends_.next();
  weak_->complete_first();
  (void)finish(wqe, qp_.state());
}

// False: the queue failed on the way.
bool Requester::complete_before(std::size_t index) {
  for (; index != 0; --index) {
    const weak::Progress& first = (*weak_)[0].progress;
    if (first.brings() && !first.landed && !land(0)) return false;
    complete_first();
  }
  return true;
}

// The peer is gone: what it has acknowledged is no failure, although it was not completed yet.
void Requester::complete_executed() {
  while (!weak_->empty() && (*weak_)[0].progress.executed)
    if (!complete_before(1)) break;
  wait_by_choice();
}

// In SQD, what has begun is completed, and nothing else begins.
void Requester::complete_begun() {
  if (qp_.state() != QpState::sqd) return;
  weak_->hurry(true);
  while (!weak_->empty()) {
    weak::Request& first = (*weak_)[0];
    if (!first.progress.executed) {
      if (first.moved == 0) break;
      const std::optional<Outcome> outcome = execute_weak(0);
      if (outcome != Outcome::done) {
        if (outcome) (void)give_way_to(0, *outcome);
        break;
      }
    }
    if (!complete_before(1)) break;
  }
  weak_->hurry(false);
  wait_by_choice();
}

// As on the normal path. True: go on.
bool Requester::give_way_to(std::size_t index, Outcome outcome) {
  if (!complete_before(index)) return false;
  const bool goes_on = act_on(outcome, sends_.next(), qp_.state()) == Next::go_on;
  while (!weak_->empty() && weak_->first() != sends_.executed()) weak_->complete_first();  // lost
  return goes_on;
}

void Requester::wait_by_choice() {
  if (under_way()) return;
  parked_ = weak_->empty() ? Park::none : Park::chosen;
  if (weak_->empty()) return;
  if (qp_.config.type == QpType::ud) addresses_.keep(sends_);
  qp_.whole.note_parked();
  if (const auto at_ns = weak_->next_timer(qp_.nic.host.now_ns())) qp_.nic.host.wake_at(*at_ns);
}

void Requester::hurry(Until until) {
  if (weak_ == nullptr) return;
  if (until == Until::begun_is_complete) return complete_begun();
  if (qp_.state() != QpState::rts) return;
  weak_->hurry(true);
  execute();
  weak_->hurry(false);
}

}  // namespace weir::rnic
