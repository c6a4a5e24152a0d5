// Which queue pairs wait to be tried again. Threading: any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

namespace weir::rnic {

class QueuePair;

class ParkedQueues {
 public:
  bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  void note(QueuePair& qp) {
    const std::lock_guard lock(mutex_);
    if (std::find(queues_.begin(), queues_.end(), &qp) != queues_.end()) return;
    queues_.push_back(&qp);
    count_.fetch_add(1, std::memory_order_relaxed);
  }
  void forget(QueuePair& qp) {
    const std::lock_guard lock(mutex_);
    if (std::erase(queues_, &qp) != 0) count_.fetch_sub(1, std::memory_order_relaxed);
  }
  // All of them; those that wait on are noted again.
  std::vector<QueuePair*> take() {
    const std::lock_guard lock(mutex_);
    count_.store(0, std::memory_order_relaxed);
    return std::exchange(queues_, {});
  }

 private:
  std::atomic<int> count_{0};  // of queues_: pollers look without the lock
  std::mutex mutex_;
  std::vector<QueuePair*> queues_;
};

}  // namespace weir::rnic
