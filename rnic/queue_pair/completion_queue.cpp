#include "rnic/queue_pair/completion_queue.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

#include "rnic/adapter.hpp"
#include "rnic/queue_pair/completion_signal.hpp"
#include "rnic/queue_pair/queue_pair.hpp"

namespace weir::rnic {

CompletionQueue::CompletionQueue(Adapter& nic, std::uint32_t index, std::uint32_t cqe, std::uint32_t channel)
    : nic_(nic), ctx_(nic.segment().header().cqs[index]), index_(index), cqe_(cqe) {
  ctx_.armed = 0;
  ctx_.channel.store(channel, std::memory_order_relaxed);
  ctx_.events = 0;
  ctx_.ready0 = 0;
  for (auto& word : ctx_.summary) word = 0;
}

std::uint32_t CompletionQueue::attach(Line made) {
  const std::lock_guard lock(lock_);
  attached_.fetch_add(1, std::memory_order_relaxed);
  if (made.srq != nullptr) ++srqs_;
  if (!free_lines_.empty()) {
    const std::uint32_t line = free_lines_.back();
    free_lines_.pop_back();
    lines_[line] = made;
    return line;
  }
  lines_.push_back(made);
  return static_cast<std::uint32_t>(lines_.size() - 1);
}

void CompletionQueue::detach(std::uint32_t line) {
  const std::lock_guard lock(lock_);
  attached_.fetch_sub(1, std::memory_order_relaxed);
  if (lines_[line].srq != nullptr) --srqs_;
  lines_[line] = {};
  free_lines_.push_back(line);
}

void CompletionQueue::arm(Armed how) {
  // Arming for the next solicited completion does not undo arming for the next one (IBA 11.4.2.2).
  std::uint32_t before = static_cast<std::uint32_t>(Armed::no);
  if (how == Armed::next)
    ctx_.armed.store(static_cast<std::uint32_t>(how), std::memory_order_seq_cst);
  else
    ctx_.armed.compare_exchange_strong(before, static_cast<std::uint32_t>(how), std::memory_order_seq_cst);
  nic_.departures().will_sleep();
  nic_.host().event_wanted();
}

bool CompletionQueue::take_event() {
  std::uint32_t events = ctx_.events.load(std::memory_order_acquire);
  while (events != 0) {
    if (ctx_.events.compare_exchange_weak(events, events - 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

std::uint64_t CompletionQueue::take_ready_word(std::uint32_t word) {
  std::atomic<std::uint64_t>& bits = word == 0 ? ctx_.ready0 : ctx_.ready[word];
  // Looking before exchanging keeps an idle poll from owning the line that producers write.
  if (bits.load(std::memory_order_relaxed) == 0) return 0;
  return bits.exchange(0, std::memory_order_seq_cst);
}

// The first word at or after `from` that the summary marks; 0: none.
std::uint32_t CompletionQueue::next_marked_word(std::uint32_t from) const {
  for (std::uint32_t s = from / 64; s < ready_words / 64; ++s) {
    std::uint64_t words = ctx_.summary[s].load(std::memory_order_relaxed);
    if (s == from / 64) words &= ~0ull << (from % 64);
    if (words != 0) return s * 64 + static_cast<std::uint32_t>(std::countr_zero(words));
  }
  return 0;
}

void CompletionQueue::take_word(std::uint32_t word) {
  if (word != 0) ctx_.summary[word / 64].fetch_and(~(1ull << (word % 64)), std::memory_order_seq_cst);
  held_word_ = word;
  held_bits_ = 0;
  hold(take_ready_word(word));
}

// Prefetches: the CQEs of all bits arrive from the producers' cores while we look at the first.
void CompletionQueue::hold(std::uint64_t bits) {
  held_bits_ |= bits;
  for (; bits != 0; bits &= bits - 1) {
    const std::size_t line = std::size_t{held_word_} * 64 + static_cast<std::size_t>(std::countr_zero(bits));
    if (line < lines_.size() && lines_[line].qp != nullptr) lines_[line].qp->prefetch_completion();
  }
}

// The next queue pair with something to poll. Round robin within a word, then the words in a circle, so that
// a busy queue pair waits for all others.
bool CompletionQueue::next_ready(std::uint32_t& line) {
  // 64 queue pairs or fewer: one word, looked at every time.
  if (held_word_ == 0 && next_marked_word(1) == 0) {
    hold(take_ready_word(0));
    if (held_bits_ == 0) return false;
  }
  while (held_bits_ == 0) {
    take_word(next_marked_word(held_word_ + 1));
    if (held_word_ == 0 && held_bits_ == 0 && next_marked_word(1) == 0) return false;
  }
  const std::uint64_t later = held_bits_ & (~0ull << last_bit_ << 1);
  last_bit_ = static_cast<std::uint32_t>(std::countr_zero(later != 0 ? later : held_bits_));
  held_bits_ &= ~(1ull << last_bit_);
  line = held_word_ * 64 + last_bit_;
  return true;
}

// The caller's array is full, but this queue pair may hold more: keep its turn. Usually that needs no atomic;
// with more than 64 queue pairs it queues behind the others through the map.
void CompletionQueue::put_back(std::uint32_t line) {
  if (held_word_ != 0 || next_marked_word(1) != 0)
    mark_ready(ctx_, line);
  else
    held_bits_ |= 1ull << (line % 64);
}

std::size_t CompletionQueue::poll_line(std::uint32_t line, std::span<WorkCompletion> out) {
  const Line from = line < lines_.size() ? lines_[line] : Line{};
  if (from.qp != nullptr) return from.qp->poll_completions(*this, out);
  return from.srq != nullptr ? from.srq->poll_completions(nic_.parts(), out) : 0;
}

std::size_t CompletionQueue::poll_marked(std::span<WorkCompletion> out) {
  std::size_t filled = 0;
  std::uint32_t line = 0;
  while (filled < out.size() && next_ready(line)) {
    if (line < watched_lines) continue;
    filled += poll_line(line, out.subspan(filled));
    if (filled == out.size()) put_back(line);
  }
  return filled;
}

bool CompletionQueue::packets_may_complete_here() const {
  return on_packets.load(std::memory_order_relaxed) != 0 ||
         (srqs_ != 0 && nic_.xrc_on_packets().load(std::memory_order_relaxed) != 0);
}

void CompletionQueue::receive_packets() {
  const bool came = nic_.receive_packets(Adapter::Patience::try_once);
  DepartureStage& held = nic_.departures().here();
  came ? held.found_more() : held.polled(0);
}

int CompletionQueue::poll(std::span<WorkCompletion> out) {
  const std::lock_guard lock(lock_);
  const auto watched = static_cast<std::uint32_t>(std::min<std::size_t>(lines_.size(), watched_lines));
  std::size_t filled = 0;
  // One round, starting where the last call's array was full, so that a busy queue pair
  // waits for all others.
  for (std::uint32_t looks = 0; looks <= watched && filled < out.size(); ++looks) {
    if (turn_ < watched) {
      filled += poll_line(turn_++, out.subspan(filled));
      continue;
    }
    turn_ = 0;
    if (lines_.size() > watched_lines) filled += poll_marked(out.subspan(filled));
  }
  const bool packets = packets_may_complete_here();
  if (packets && filled != 0) nic_.departures().here().polled(filled);
  if (filled == 0) {
    if (packets) receive_packets();
    nic_.resume_parked(Adapter::Patience::try_once);
  } else if (Tracer* const tracer = nic_.tracer(); tracer != nullptr) {
    for (const WorkCompletion& wc : out.first(filled)) tracer->polled(wc);
  }
  return static_cast<int>(filled);
}

bool CompletionQueue::peer_on_this_cpu() {
  const Cpu cpu = current_cpu();
  if (cpu == 0) return false;
  const std::lock_guard lock(lock_);
  const auto watched = std::span(lines_).first(std::min<std::size_t>(lines_.size(), watched_lines));
  return std::any_of(watched.begin(), watched.end(),
                     [cpu](const Line& line) { return line.qp != nullptr && line.qp->initiator_on(cpu); });
}

std::size_t CompletionQueue::unpolled() {
  const std::lock_guard lock(lock_);
  std::size_t count = 0;
  for (const Line& line : lines_) {
    if (line.qp != nullptr) count += line.qp->unpolled(*this);
    if (line.srq != nullptr) count += line.srq->completions()->unpolled();
  }
  return count;
}

}  // namespace weir::rnic
