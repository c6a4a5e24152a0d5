#include "rnic/queue_pair/completion_signal.hpp"

namespace weir::rnic {

void mark_ready(CqContext& cq, std::uint32_t line) {
  // seq_cst: the poller clears the bit and then reads CQEs; the arming side reads `armed` after this. See
  // completion_queue.hpp.
  if (line < watched_lines) return;
  if (line < 64) {
    cq.ready0.fetch_or(1ull << line, std::memory_order_seq_cst);
    return;
  }
  const std::uint32_t word = line / 64 % ready_words;
  cq.ready[word].fetch_or(1ull << (line % 64), std::memory_order_seq_cst);
  cq.summary[word / 64].fetch_or(1ull << (word % 64), std::memory_order_seq_cst);
}

bool take_armed(CqContext& cq, Solicited solicited) {
  if (cq.channel.load(std::memory_order_relaxed) == 0) return false;  // nobody can sleep on it
  std::uint32_t armed = cq.armed.load(std::memory_order_seq_cst);
  const auto wanted = [&] {
    return armed == static_cast<std::uint32_t>(Armed::next) ||
           (armed == static_cast<std::uint32_t>(Armed::solicited_only) && solicited == Solicited::yes);
  };
  while (wanted()) {
    if (cq.armed.compare_exchange_weak(armed, 0, std::memory_order_seq_cst)) {
      cq.events.fetch_add(1, std::memory_order_release);
      return true;
    }
  }
  return false;
}

}  // namespace weir::rnic
