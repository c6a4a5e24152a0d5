#include "verbs/nic/handover.hpp"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "link/memory/futex.hpp"
#include "link/not_cancelled.hpp"
#include "rnic/memory/spin_lock.hpp"
#include "rnic/memory/trapped_copy.hpp"

namespace weir::verbs {
namespace {

using rnic::CopyLane;
using rnic::LaneCopy;
using rnic::LaneState;
using rnic::LaneWord;
using Clock = std::chrono::steady_clock;

constexpr int lane_looks = 100, lane_yields = 100;
constexpr std::chrono::microseconds pause{100};         // between looks for a free lane
constexpr std::chrono::milliseconds nap{2};             // how often a sleeper checks that the target lives
constexpr std::chrono::milliseconds short_patience{1};  // if the mover was late the last time
// Bounds the patience, because others may wait for an atomic's lock meanwhile.
constexpr std::uint32_t most_doublings = 3;

// Walks through the pieces of our own memory.
class Cursor {
 public:
  explicit Cursor(std::span<const iovec> pieces) : pieces_(pieces) {}

  template <class Copy>  // Copy(at, length), in order, for the next `bytes`
  void advance(std::size_t bytes, Copy copy) {
    while (bytes > 0 && !pieces_.empty()) {
      const std::size_t length = std::min(bytes, pieces_[0].iov_len - done_);
      copy(static_cast<std::byte*>(pieces_[0].iov_base) + done_, length);
      bytes -= length;
      done_ += length;
      if (done_ == pieces_[0].iov_len) pieces_ = pieces_.subspan(1), done_ = 0;
    }
  }

 private:
  std::span<const iovec> pieces_;
  std::size_t done_ = 0;
};

}  // namespace

Handover::Transfer Handover::write(std::span<const iovec> local, const rnic::Peer::Remote& remote,
                                   std::chrono::nanoseconds patience) {
  return transfer(LaneCopy::into_owner, local, remote, patience);
}

Handover::Transfer Handover::read(std::span<const iovec> local, const rnic::Peer::Remote& remote,
                                  std::chrono::nanoseconds patience) {
  return transfer(LaneCopy::out_of_owner, local, remote, patience);
}

std::chrono::nanoseconds Handover::patience_now(std::chrono::nanoseconds wanted) const {
  if (late_.load(std::memory_order_relaxed))
    return std::min<std::chrono::nanoseconds>(wanted, short_patience);
  return wanted * (1 << doublings_.load(std::memory_order_relaxed));
}

void Handover::mover_runs() {
  if (!late_.exchange(false, std::memory_order_relaxed)) return;
  const std::uint32_t doublings = doublings_.load(std::memory_order_relaxed);
  doublings_.store(std::min(doublings + 1, most_doublings), std::memory_order_relaxed);
}

Handover::Transfer Handover::nobody_came() {
  if (!target_.alive()) return Transfer::gone;
  late_.store(true, std::memory_order_relaxed);
  const bool nobody = target_.segment().mover_missing.load(std::memory_order_relaxed) != 0;
  return nobody ? Transfer::refused : Transfer::late;
}

// The mover no longer uses the lane.
Handover::Transfer Handover::end(CopyLane& lane, Transfer outcome) {
  lane.word.store(LaneWord{LaneState::free, 0}.pack(), std::memory_order_release);
  return outcome;
}

// One lane at a time, so that the last byte of a WRITE lands last.
Handover::Transfer Handover::transfer(LaneCopy copy, std::span<const iovec> local,
                                      const rnic::Peer::Remote& remote, std::chrono::nanoseconds patience) {
  const link::NotCancelled whole;
  patience = patience_now(patience);
  CopyLane* const lane = claim(Clock::now() + patience);
  if (lane == nullptr) return nobody_came();
  const auto number = static_cast<std::size_t>(lane - target_.segment().copy_lanes);
  std::byte* const bytes = target_.segment().copy_bytes[number];
  Cursor cursor(local);
  for (std::size_t i = 0; i < remote.pieces.size(); ++i) {
    const iovec& piece = remote.pieces[i];
    for (std::size_t done = 0; done < piece.iov_len;) {
      const std::size_t length = std::min<std::size_t>(piece.iov_len - done, rnic::copy_lane_bytes);
      std::byte* at = bytes;
      const auto lay_down = [&] {
        cursor.advance(length, [&](const std::byte* from, std::size_t part) {
          std::memcpy(at, from, part);
          at += part;
        });
      };
      const auto take_up = [&] {
        cursor.advance(length, [&](std::byte* to, std::size_t part) {
          std::memcpy(to, at, part);
          at += part;
        });
      };
      if (copy == LaneCopy::into_owner && rnic::try_copy(local, {}, lay_down) != rnic::Trapped::no)
        return end(*lane, Transfer::local_fault);
      lane->copy = copy;
      lane->key = remote.keys[i];
      lane->bytes = static_cast<std::uint32_t>(length);
      lane->at = reinterpret_cast<std::uint64_t>(piece.iov_base) + done;
      post(*lane);
      if (const Transfer outcome = await(*lane, patience); outcome != Transfer::done) return outcome;
      if (copy == LaneCopy::out_of_owner && rnic::try_copy(local, {}, take_up) != rnic::Trapped::no)
        return end(*lane, Transfer::local_fault);
      done += length;
    }
  }
  return end(*lane, Transfer::done);
}

CopyLane* Handover::claim(Deadline give_up) {
  for (int tries = 0; target_.alive(); ++tries) {
    for (CopyLane& lane : target_.segment().copy_lanes) {
      std::uint32_t word = lane.word.load(std::memory_order_relaxed);
      if (LaneWord::unpack(word).state != LaneState::free) continue;
      // acquire: the copies of the previous user are over.
      if (lane.word.compare_exchange_strong(word, LaneWord{LaneState::claimed, own_}.pack(),
                                            std::memory_order_acquire))
        return &lane;
    }
    // Checked in each round, because under load a yield can cost the time slices of others.
    if (Clock::now() >= give_up) break;
    if (tries < lane_looks + lane_yields)
      ::sched_yield();
    else
      std::this_thread::sleep_for(pause);
  }
  return nullptr;
}

void Handover::post(CopyLane& lane) {
  lane.word.store(LaneWord{LaneState::posted, own_}.pack(), std::memory_order_release);
  // seq_cst: we ring, then check whether the mover sleeps; it announces its sleep, then checks the bell.
  rnic::SegmentHeader& segment = target_.segment();
  segment.copy_bell.fetch_add(1, std::memory_order_seq_cst);
  if (segment.mover_sleeps.load(std::memory_order_seq_cst) != 0) link::wake_sleepers(segment.copy_bell);
}

Handover::Transfer Handover::await(CopyLane& lane, std::chrono::nanoseconds patience) {
  const auto finished = [&] {
    late_.store(false, std::memory_order_relaxed);
    doublings_.store(0, std::memory_order_relaxed);
    const rnic::LaneAnswer answer = lane.answer;
    if (answer == rnic::LaneAnswer::copied) return Transfer::done;
    change(lane, LaneState::done, LaneState::free);
    return answer == rnic::LaneAnswer::refused ? Transfer::refused : Transfer::fault;
  };
  for (int tries = 0; tries < lane_looks; ++tries) {
    if (state_of(lane) == LaneState::done) return finished();
    rnic::cpu_relax();
  }
  const auto began = Clock::now();
  for (int tries = 0; tries < lane_yields && Clock::now() - began < patience; ++tries) {
    if (state_of(lane) == LaneState::done) return finished();
    ::sched_yield();
  }
  for (;;) {
    // seq_cst: we announce our sleep, then read the word (the kernel reads it again); the mover changes the
    // word, then checks whether we sleep.
    lane.sleeper.store(1, std::memory_order_seq_cst);
    const std::uint32_t word = lane.word.load(std::memory_order_seq_cst);
    const LaneState state = LaneWord::unpack(word).state;
    if (state == LaneState::posted || state == LaneState::running)
      link::sleep_on(lane.word, word, std::min<std::chrono::nanoseconds>(patience, nap));
    lane.sleeper.store(0, std::memory_order_relaxed);
    if (state_of(lane) == LaneState::done) return finished();
    if (!target_.alive()) return Transfer::gone;
    const auto waited = Clock::now() - began;
    if (waited < patience) continue;
    late_.store(true, std::memory_order_relaxed);
    if (change(lane, LaneState::posted, LaneState::cancelled)) return nobody_came();
    // It is running or has just finished. A mover stopped in the middle may still write.
    if (waited >= longest_copy_ && change(lane, LaneState::running, LaneState::abandoned))
      return target_.alive() ? Transfer::unfinished : Transfer::gone;
    if (const LaneState now = state_of(lane); now != LaneState::running && now != LaneState::done)
      return Transfer::fault;  // the target's words are nonsense
  }
}

bool Handover::change(CopyLane& lane, LaneState from, LaneState to) const {
  std::uint32_t expected = LaneWord{from, own_}.pack();
  return lane.word.compare_exchange_strong(expected, LaneWord{to, own_}.pack(), std::memory_order_seq_cst);
}

LaneState Handover::state_of(const CopyLane& lane) const {
  return LaneWord::unpack(lane.word.load(std::memory_order_acquire)).state;
}

}  // namespace weir::verbs
