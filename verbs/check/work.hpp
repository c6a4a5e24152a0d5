// The work requests that a queue pair has not completed yet, as far as the program can know: posted, and no
// completion polled that says so.
//
// Threading: each record under its own lock, which is held over the post itself, so that no completion is
// polled before its request is on record. Under it, only Objects' lock.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "verbs/check/call_site.hpp"
#include "verbs/check/next_calls.hpp"
#include "verbs/check/place.hpp"

namespace weir::check {

// Pieces of a work request; the first few need no memory of their own.
class Pieces {
 public:
  Pieces() = default;
  Pieces(const ibv_sge* list, int count);
  std::span<const ibv_sge> all() const {
    return more_.empty() ? std::span(few_).first(count_) : std::span<const ibv_sge>(more_);
  }
  std::uint64_t bytes() const;

 private:
  std::array<ibv_sge, 4> few_{};
  std::uint32_t count_ = 0;
  std::vector<ibv_sge> more_;
};

struct PostedSend {
  std::uint64_t wr_id = 0;
  ibv_wr_opcode opcode = IBV_WR_SEND;
  unsigned flags = 0;
  bool signaled = false;
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  Pieces pieces;
  CallSite posted_at;
  std::optional<std::uint64_t> source_sum;  // of the bytes that it sends, when it was posted (sources.cpp)

  bool is_inline() const { return (flags & IBV_SEND_INLINE) != 0; }
  bool brings_data_back() const;
  bool is_atomic() const {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
};

struct PostedReceive {
  std::uint64_t wr_id = 0;
  Pieces pieces;
  CallSite posted_at;
};

struct QueuePairRecord {
  ibv_qp* qp = nullptr;
  std::uint32_t number = 0;
  ibv_qp_cap caps{};
  bool signals_all = false;
  // Requests are also posted by ibv_wr_*, which are not on record: rules that need all of them keep silent.
  bool has_builders = false;
  Place created;

  std::mutex mutex;
  std::deque<PostedSend> sends;
  std::deque<PostedReceive> receives;
  std::uint32_t sources_seen = 0;
  std::uint32_t reads = 0;   // of `sends`: those that bring data back
  ibv_qp_attr attributes{};  // as last set
};

struct SharedReceiveRecord {
  std::mutex mutex;
  std::deque<PostedReceive> receives;
};

struct CompletionQueueRecord {
  ibv_cq* cq = nullptr;
  std::mutex mutex;
  std::uint64_t events_taken = 0, events_acknowledged = 0;
  Place event_taken;  // the last
  // Since the CQ was armed last:
  bool armed = false, polled = false;
  std::size_t held_when_armed = 0;
  Place armed_at;
};

// Records by handle, and queue pairs also by number.
std::shared_ptr<QueuePairRecord> record_of(const ibv_qp*);
std::shared_ptr<QueuePairRecord> queue_pair_numbered(std::uint32_t number);
std::shared_ptr<CompletionQueueRecord> record_of(const ibv_cq*);
std::shared_ptr<SharedReceiveRecord> record_of(const ibv_srq*);
std::vector<std::shared_ptr<QueuePairRecord>> all_queue_pairs();
std::vector<std::shared_ptr<CompletionQueueRecord>> all_completion_queues();
void keep(const ibv_qp*, std::shared_ptr<QueuePairRecord>);
void keep(const ibv_cq*, std::shared_ptr<CompletionQueueRecord>);
void keep(const ibv_srq*, std::shared_ptr<SharedReceiveRecord>);
void drop(const ibv_qp*);
void drop(const ibv_cq*);
void drop(const ibv_srq*);
void drop_all_records();

// What was checked, for the summary.
struct Totals {
  std::atomic<std::uint64_t> queue_pairs{0}, requests{0}, completions{0};
};
Totals& totals();

}  // namespace weir::check
