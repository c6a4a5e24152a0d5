// Whether polls of a queue pair's completion queues look for packets. Any thread.
#pragma once

#include <atomic>

#include "rnic/queue_pair/qp_common.hpp"

namespace weir::rnic {

class PacketPolling {
 public:
  explicit PacketPolling(const QpCommon& qp) : qp_(qp) {}

  void begin() {
    if (on_.load(std::memory_order_relaxed) || on_.exchange(true)) return;
    count(+1);
  }
  void end() {
    if (on_.exchange(false)) count(-1);
  }

 private:
  void count(int by) const {
    for (std::atomic<int>* const polls : {qp_.sends.on_packets, qp_.receives.on_packets})
      if (polls != nullptr) polls->fetch_add(by, std::memory_order_relaxed);
  }

  const QpCommon& qp_;
  std::atomic<bool> on_{false};
};

}  // namespace weir::rnic
