// The producer's half of a completion: makes it visible, marks its queue pair in the CQ, and says whether
// somebody sleeps there. For a CQ of any process; the consumer's half is completion_queue.hpp, where the
// order of the two is explained.
#pragma once

#include <atomic>
#include <cstdint>

#include "rnic/memory/segment_layout.hpp"

namespace weir::rnic {

enum class Solicited : bool { no, yes };

// Sets the bit of that line.
void mark_ready(CqContext&, std::uint32_t line);
// True: the CQ was armed for such a completion, and its channel must be woken.
bool take_armed(CqContext&, Solicited);

// Stores the word that makes a completion visible.
inline void publish_completion(std::atomic<std::uint32_t>& word, std::uint32_t value, const CqContext& cq) {
  // release: the poller must see the completion that the word is about. Before a look at `armed` it must be
  // seq_cst, or a poller that armed and looked once more could sleep beside the completion.
  if (cq.channel.load(std::memory_order_relaxed) != 0)
    word.store(value, std::memory_order_seq_cst);
  else
    word.store(value, std::memory_order_release);
}

}  // namespace weir::rnic
