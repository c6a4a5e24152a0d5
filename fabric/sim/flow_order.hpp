// Which flows wait for which: collectives and traces, whose hosts send on what they have received.
//
// A flow of FlowSpec::start no_time begins when all flows and pauses that precede it are over: a flow when
// its last byte has arrived, a pause (what a host computes in between) when its time has passed. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/sim/settings.hpp"

namespace weir::fabric::sim {

class FlowOrder {
 public:
  explicit FlowOrder(const Experiment& run);

  bool empty() const { return successors_.empty(); }
  // What is over is a flow's id, or a pause's index with pause_bit. Calls begin(flow id) for each flow that
  // may begin now, and wait(pause's index, length) for each pause that begins now and takes time.
  template <class Begin, class Wait>
  void over(std::uint32_t what, Begin begin, Wait wait) {
    over_.assign(1, what);
    while (!over_.empty()) {
      const std::size_t at = place(over_.back());
      over_.pop_back();
      for (std::uint32_t i = first_[at]; i < first_[at + 1]; ++i) {
        const std::uint32_t next = successors_[i];
        if (--waits_for_[place(next)] != 0) continue;
        if ((next & pause_bit) == 0)
          begin(next);
        else if (const Ticks length = run_.pauses[next & ~pause_bit].length; length != 0)
          wait(next & ~pause_bit, length);
        else
          over_.push_back(next);
      }
    }
  }

 private:
  // Pauses come after the flows.
  std::size_t place(std::uint32_t what) const {
    return (what & pause_bit) == 0 ? what : run_.flows.size() + (what & ~pause_bit);
  }

  const Experiment& run_;
  std::vector<std::uint32_t> first_;  // by place: where its successors begin
  std::vector<std::uint32_t> successors_;
  std::vector<std::uint32_t> waits_for_;  // by place: how many are not over
  std::vector<std::uint32_t> over_;
};

}  // namespace weir::fabric::sim
