// A receiver that is slow on purpose (`weir run --fault 'rnr 2ms'`): tells the NIC from which message on a
// queue pair of ours withholds its receives, and lets each message pass when faults/ says so.
//
// Threading: all functions from any thread; messages are let pass from the link's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "faults/receive_faults.hpp"
#include "link/same_host.hpp"

namespace weir::verbs {

class SlowReceiver {
 public:
  // As Adapter::withhold_receives().
  using Withhold = std::function<void(std::uint32_t qpn, std::uint32_t from_message)>;
  // `link` outlives it. Times of faults count from `begun`.
  SlowReceiver(faults::Plan plan, link::SameHostLink& link, link::Clock::time_point begun, Withhold withhold);

  // `order`: as faults count queue pairs.
  void queue_pair_made(std::uint32_t qpn, std::uint64_t order);
  // That message found its receive withheld. Once for each message.
  void withheld(std::uint32_t qpn, std::uint32_t message);
  // Arms what begins or ends by time.
  void schedule();

  // What happened so far, under the lock.
  template <class Read>
  auto read(Read with) const {
    const std::lock_guard lock(mutex_);
    return with(faults_);
  }

 private:
  struct QueuePair {
    std::uint64_t order = 0;
    std::uint32_t passed = 0;  // the last message that waited and went on
  };
  std::uint64_t now_ns() const;
  // With mutex_ held:
  void arm(std::uint32_t qpn, const QueuePair& of);
  void let_pass(std::uint32_t qpn, std::uint32_t message);

  link::SameHostLink& link_;
  const link::Clock::time_point begun_;
  const Withhold withhold_;
  mutable std::mutex mutex_;  // guards everything below
  faults::ReceiveFaults faults_;
  std::map<std::uint32_t, QueuePair> queue_pairs_;  // by number
};

}  // namespace weir::verbs
