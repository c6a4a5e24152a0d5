// The completion queue: where completions of many queue pairs are polled and where a sleeping application is
// woken.
//
// A CQ here has no ring of its own. Every queue pair keeps its own completions (sends in its send ring,
// receives in its shared completion ring), and a bitmap in the CQ (CqContext) says which queue pairs have
// some. So producers in several processes never contend for a slot, a killed producer cannot leave a hole,
// and a CQ cannot overrun.
//
// Ordering: the producer publishes the CQE, then sets the bit, then reads `armed`. The poller clears the bit,
// then reads the CQEs. To arm, the caller stores `armed` and then polls once more (as the verbs API demands).
// All of these are read-modify-writes or seq_cst, so every completion leaves either a bit or an event. The
// first few queue pairs are checked in every poll and have no bit; if the CQ has no channel either, the
// producer reads nothing after the CQE, and publishing it is a plain store.
//
// Threading: poll() runs under `lock`. The producer's half (completion_signal.hpp) runs on any thread of any
// process.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "rnic/memory/segment_layout.hpp"
#include "rnic/memory/spin_lock.hpp"

namespace weir::rnic {

class QueuePair;
class SharedReceiveQueue;
class Adapter;

class CompletionQueue {
 public:
  CompletionQueue(Adapter&, std::uint32_t index, std::uint32_t cqe, std::uint32_t channel);

  std::uint32_t index() const { return index_; }
  std::uint32_t cqe() const { return cqe_; }
  void resize(std::uint32_t cqe) { cqe_ = cqe; }
  CqContext& context() const { return ctx_; }

  int poll(std::span<WorkCompletion> out);
  // The number of completions held now; looks at every queue pair, so not for the data path.
  std::size_t unpolled();
  void arm(Armed how);
  // Somebody may sleep until the next completion.
  bool is_armed() const {
    return ctx_.channel.load(std::memory_order_relaxed) != 0 &&
           ctx_.armed.load(std::memory_order_seq_cst) != 0;
  }

  // Takes one pending event if there is one (the completion channel was readable).
  bool take_event();
  std::uint32_t take_events() { return ctx_.events.exchange(0, std::memory_order_acq_rel); }  // all of them

  // A line is the bit of a queue pair, or of an XRC SRQ, in the ready map. Detaching purges its unpolled
  // completions.
  std::uint32_t attach(QueuePair* qp) { return attach(Line{qp, nullptr}); }
  std::uint32_t attach(SharedReceiveQueue* srq) { return attach(Line{nullptr, srq}); }
  void detach(std::uint32_t line);
  // A peer of a watched queue pair last rang its doorbell on this CPU: it may be waiting for the CPU.
  bool peer_on_this_cpu();
  // No poll runs while this lock is held. Lock order: after a queue pair's send lock.
  SpinLock& poll_lock() { return lock_; }
  // The number of queue pairs completing here whose packets arrive only when a poll asks for them.
  std::atomic<int> on_packets{0};
  int attached() const { return attached_.load(std::memory_order_relaxed); }

 private:
  struct Line {
    QueuePair* qp = nullptr;
    SharedReceiveQueue* srq = nullptr;
  };
  std::uint32_t attach(Line);
  bool packets_may_complete_here() const;
  void receive_packets();
  std::size_t poll_line(std::uint32_t line, std::span<WorkCompletion> out);
  std::size_t poll_marked(std::span<WorkCompletion> out);
  bool next_ready(std::uint32_t& line);
  std::uint32_t next_marked_word(std::uint32_t from) const;
  void take_word(std::uint32_t word);
  void hold(std::uint64_t bits);
  void put_back(std::uint32_t line);
  std::uint64_t take_ready_word(std::uint32_t word);

  Adapter& nic_;
  CqContext& ctx_;
  std::uint32_t index_;
  std::uint32_t cqe_;
  SpinLock lock_;
  std::vector<Line> lines_;
  std::vector<std::uint32_t> free_lines_;
  std::atomic<int> attached_{0};
  int srqs_ = 0;                 // of the lines
  std::uint64_t held_bits_ = 0;  // bits taken from word `held_word_` and not yet served
  std::uint32_t held_word_ = 0;
  std::uint32_t last_bit_ = 63;
  std::uint32_t turn_ = 0;  // the watched line to begin with; after the last watched line comes the map
};

}  // namespace weir::rnic
