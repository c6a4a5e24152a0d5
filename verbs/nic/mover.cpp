#include "verbs/nic/mover.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <system_error>
#include <utility>

#include "link/memory/futex.hpp"
#include "link/own_thread.hpp"
#include "rnic/memory/spin_lock.hpp"

namespace weir::verbs {
namespace {

using rnic::CopyLane;
using rnic::LaneState;
using rnic::LaneWord;

constexpr int looks = 100, yields = 200;  // before it sleeps: an initiator with much to copy soon returns
constexpr std::chrono::seconds longest_sleep{10};  // nothing depends on it

bool change(CopyLane& lane, LaneWord from, LaneState to) {
  std::uint32_t expected = from.pack();
  return lane.word.compare_exchange_strong(expected, LaneWord{to, from.claimer}.pack(),
                                           std::memory_order_seq_cst);
}

}  // namespace

Mover::Mover(rnic::SegmentHeader& segment, link::UniqueFd segment_file, const rnic::TptEntry* table,
             std::function<void()> on_late)
    : segment_(segment), file_(std::move(segment_file)), table_(table), on_late_(std::move(on_late)) {}

Mover::~Mover() { stop(); }

void Mover::stop() {
  const std::lock_guard lock(starting_);
  stopping_.store(true, std::memory_order_release);
  if (!thread_.joinable()) return;
  segment_.copy_bell.fetch_add(1);
  link::wake_sleepers(segment_.copy_bell);
  thread_.join();
}

void Mover::start() {
  const std::lock_guard lock(starting_);
  if (thread_.joinable() || stopping_.load(std::memory_order_acquire)) return;
  try {
    thread_ = link::own_thread([this] { run(); });
  } catch (const std::system_error&) {
    // No more threads: nobody serves the lanes, and initiators see a target that does not respond.
  }
  segment_.mover_missing.store(thread_.joinable() ? 0 : 1, std::memory_order_relaxed);
}

void Mover::run() {
  ::pthread_setname_np(::pthread_self(), "weir-mover");
  for (int idle = 0; !stopping_.load(std::memory_order_acquire);) {
    const std::uint32_t rings = segment_.copy_bell.load(std::memory_order_seq_cst);
    if (serve_all()) {
      idle = 0;
    } else if (++idle < looks) {
      rnic::cpu_relax();
    } else if (idle < looks + yields) {
      ::sched_yield();
    } else {
      // seq_cst: we announce our sleep, then check the bell (in the kernel); the initiator rings, then
      // checks whether we sleep.
      segment_.mover_sleeps.store(1, std::memory_order_seq_cst);
      link::sleep_on(segment_.copy_bell, rings, longest_sleep);
      segment_.mover_sleeps.store(0, std::memory_order_relaxed);
      idle = 0;
    }
    if (std::exchange(was_late_, false)) on_late_();
  }
}

bool Mover::serve_all() {
  bool any = false;
  for (std::uint32_t i = 0; i < rnic::copy_lane_count; ++i) {
    CopyLane& lane = segment_.copy_lanes[i];
    const LaneWord word = LaneWord::unpack(lane.word.load(std::memory_order_acquire));
    if (word.state == LaneState::posted) {
      serve(i);
      any = true;
    } else if (word.state == LaneState::cancelled && change(lane, word, LaneState::free)) {
      was_late_ = any = true;
    }
  }
  return any;
}

void Mover::serve(std::uint32_t i) {
  CopyLane& lane = segment_.copy_lanes[i];
  {
    const std::lock_guard lock(copying_);
    const LaneWord posted = LaneWord::unpack(lane.word.load(std::memory_order_acquire));
    if (posted.state != LaneState::posted || !change(lane, posted, LaneState::running)) return;
    CopyLane job;  // a copy: the lane's words may change before we look again
    job.copy = lane.copy;
    job.key = lane.key;
    job.bytes = lane.bytes;
    job.at = lane.at;
    lane.answer = answer(i, job);
    const LaneWord running{LaneState::running, posted.claimer};
    if (!change(lane, running, LaneState::done)) {
      change(lane, {LaneState::abandoned, posted.claimer}, LaneState::free);
      was_late_ = true;
      return;
    }
  }
  if (lane.sleeper.load(std::memory_order_seq_cst) != 0) link::wake_sleepers(lane.word);
}

rnic::LaneAnswer Mover::answer(std::uint32_t lane, const CopyLane& job) const {
  if (!allowed(job)) return rnic::LaneAnswer::refused;
  return copy(lane, job) ? rnic::LaneAnswer::copied : rnic::LaneAnswer::fault;
}

// Under copying_, so that a region being deregistered is either seen as gone or waited for.
bool Mover::allowed(const CopyLane& job) const {
  using namespace rnic::access;
  const rnic::TptEntry& entry = table_[(job.key >> 8) & (rnic::max_keys - 1)];
  if (job.key == 0 || entry.key.load(std::memory_order_seq_cst) != job.key) return false;
  const std::uint32_t need = job.copy == rnic::LaneCopy::into_owner
                                 ? local_write | remote_write | remote_atomic
                                 : remote_read | remote_atomic;
  if (!(entry.access & need) || job.bytes > rnic::copy_lane_bytes) return false;
  return job.at >= entry.base && job.bytes <= entry.length && job.at - entry.base <= entry.length - job.bytes;
}

bool Mover::copy(std::uint32_t lane, const CopyLane& job) const {
  const std::size_t place =
      offsetof(rnic::SegmentHeader, copy_bytes) + std::size_t{lane} * rnic::copy_lane_bytes;
  for (std::uint32_t done = 0; done < job.bytes;) {
    // The kernel checks the address: NOLINTNEXTLINE(performance-no-int-to-ptr)
    void* const at = reinterpret_cast<void*>(job.at + done);
    const auto offset = static_cast<off_t>(place + done);
    // Raw system calls, because ThreadSanitizer takes the C library's pread and pwrite for accesses by this
    // thread. To the application they are a device's accesses, unordered until it polls the completion.
    const long call = job.copy == rnic::LaneCopy::into_owner ? SYS_pread64 : SYS_pwrite64;
    const long moved = ::syscall(call, file_.get(), at, std::size_t{job.bytes - done}, offset);
    if (moved <= 0) return false;
    done += static_cast<std::uint32_t>(moved);
  }
  return true;
}

void Mover::finish_copy() { const std::lock_guard lock(copying_); }

// Under copying_, so none of these copies is running.
void Mover::reclaim(rnic::Slot dead) {
  const std::lock_guard lock(copying_);
  for (CopyLane& lane : segment_.copy_lanes) {
    const LaneWord word = LaneWord::unpack(lane.word.load(std::memory_order_acquire));
    if (word.state != LaneState::free && word.claimer == dead) change(lane, word, LaneState::free);
  }
}

}  // namespace weir::verbs
