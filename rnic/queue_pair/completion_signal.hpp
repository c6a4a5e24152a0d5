// The producer's half of a completion: makes it visible, marks its queue pair in the CQ, and says whether the
// CQ has a sleeper to wake. Works on a CQ of any process. The consumer's half is completion_queue.hpp, which
// explains the ordering between the two.
#pragma once

#include <atomic>
#include <cstdint>

#include "rnic/memory/segment_layout.hpp"

namespace weir::rnic {

enum class Solicited : bool { no, yes };

// Sets the line's bit.
void mark_ready(CqContext&, std::uint32_t line);
// True: the CQ was armed for such a completion, and its channel must be woken.
bool take_armed(CqContext&, Solicited);

// Stores the word that makes a completion visible.
inline void publish_completion(std::atomic<std::uint32_t>& word, std::uint32_t value, const CqContext& cq) {
  // release: the poller must see the completion that this word announces. If `armed` is read next, the store
  // must be seq_cst; otherwise a poller that armed and polled once more could sleep although the completion
  // is there.
  if (cq.channel.load(std::memory_order_relaxed) != 0)
    word.store(value, std::memory_order_seq_cst);
  else
    word.store(value, std::memory_order_release);
}

}  // namespace weir::rnic
