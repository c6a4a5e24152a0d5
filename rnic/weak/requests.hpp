// The requests of one send queue that the weak NIC has begun: how far each is, and what was chosen for it.
//
// Steps are taken from outside (rnic/queue_pair/weak_execution.cpp), in the order that ordering.hpp allows,
// as soon as they are due: after a number of looks at the queue (its posts and empty polls), or at a time,
// which is at most `limit_ns` after the post. Bytes that are read early or land late are kept here, at most
// `max_kept_bytes` of each request; longer ones are moved at once when the request executes. Under the send
// lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "rnic/weak/choices.hpp"
#include "rnic/weak/ordering.hpp"
#include "rnic/weak/weaknesses.hpp"

namespace weir::rnic::weak {

inline constexpr std::uint64_t limit_ns = 2'000'000;
inline constexpr std::uint64_t max_kept_bytes = 256u << 10;
// Requests looked at beyond the oldest one that is not complete.
inline constexpr std::size_t max_window = 64;
inline constexpr std::uint64_t line_bytes = 64;

// What a process's weak NIC has done. Any thread.
struct Tally {
  std::atomic<std::uint64_t> requests = 0, late = 0, overtaken = 0, split = 0, withheld = 0, lost = 0;
};

// One for a process; its queue pairs and completion queues share it.
struct Weak {
  explicit Weak(const Plan& chosen) : plan(chosen) {}
  const Plan plan;
  Tally tally;
  std::atomic<std::uint32_t> queue_pairs = 0, completion_queues = 0;
};

// When a step is due.
struct Wait {
  std::uint64_t looks = 0;  // the queue's count of them
  std::uint64_t at_ns = 0;
  bool over(std::uint64_t looks_now, std::uint64_t now_ns) const {
    return looks_now >= looks || now_ns >= at_ns;
  }
};

// A part of a WRITE or READ that is moved by itself.
struct Part {
  std::uint64_t offset = 0, bytes = 0;
  std::uint32_t spins = 0;  // a pause behind it
  bool stops = false;       // a longer one: others may look at the memory meanwhile
};

struct Request {
  Progress progress;
  Wait read, execute, land, next_part;
  bool sample_again = false;    // once more, when a later request has executed
  std::vector<std::byte> kept;  // read from its source, or to be landed
  bool keeps = false;           // `kept` is used; else its bytes are where the WQE says
  std::vector<Part> parts;      // to be moved, in that order; empty: whole
  std::size_t moved = 0;        // of them
  bool pauses = false;          // before the next one
  bool is_late = false;
};

// What a request is, as its WQE says.
struct Posted {
  Kind kind;
  bool fenced;
  bool may_be_split;  // a WRITE or READ of an RC or UC queue pair on this host
  std::uint64_t bytes;
  std::uint64_t remote_addr;  // lines are those of the target
};

class Requests {
 public:
  explicit Requests(Weak& weak) : weak_(weak), queue_(weak.queue_pairs.fetch_add(1)) {}

  bool has(Weakness weakness) const { return weak_.plan.has(weakness); }
  Tally& tally() { return weak_.tally; }

  // ---- a look at the queue
  void look(std::uint64_t now_ns) {
    ++looks_;
    now_ns_ = now_ns;
  }
  // While it hurries, every step is due: the process ends, or what has begun is to be completed.
  void hurry(bool hurries) { hurries_ = hurries; }
  bool due(const Wait& wait) const { return hurries_ || wait.over(looks_, now_ns_); }

  // ---- its requests; the oldest is number `first()` of the send queue
  std::uint32_t first() const { return first_; }
  std::uint32_t end() const { return first_ + static_cast<std::uint32_t>(open_.size()); }
  std::size_t size() const { return std::min(open_.size(), max_window); }
  bool empty() const { return open_.empty(); }
  Request& operator[](std::size_t index) { return open_[index]; }
  void admit(const Posted&);
  bool may_take(std::size_t index, Step step) const {
    return may(open_, index, step,
               [](const Request& request) -> const Progress& { return request.progress; });
  }
  void complete_first() {
    open_.pop_front();
    ++first_;
  }
  // The send queue's requests up to that number are over, by completion or flush.
  void forget(std::uint32_t next) {
    open_.clear();
    first_ = next;
  }

  bool loses_datagram();

  // Waits that begin now.
  Wait draw_landing() { return has(Weakness::unfenced) ? draw_now(0x1a4d) : Wait{}; }
  Wait draw_pause() { return draw_now(0x9a05e); }
  // The next time at which a step of an open request is due by itself; nullopt: a timer for it runs already.
  // `after_noting_ns`: the time, read after the queue was noted as parked. A timer that is due later than
  // that finds it; an earlier one may have come in between, in vain.
  std::optional<std::uint64_t> next_timer(std::uint64_t after_noting_ns);

 private:
  Wait draw(Choices&) const;
  Wait draw_now(std::uint64_t kind);
  std::vector<Part> draw_parts(Choices&, const Posted&) const;

  Weak& weak_;
  const std::uint32_t queue_;
  std::deque<Request> open_;
  std::uint32_t first_ = 0;
  std::uint64_t looks_ = 0, now_ns_ = 0;
  std::uint64_t timer_ns_ = 0;
  std::uint32_t drawn_ = 0;
  bool hurries_ = false;
};

}  // namespace weir::rnic::weak
