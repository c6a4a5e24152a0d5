// The queue pairs that wait for one window, in the order in which they will have their turn. Threading: any
// thread.
#pragma once

#include <deque>
#include <mutex>

namespace weir::rnic {

class QueuePair;

class SendLine {
 public:
  // A queue pair stands in line once.
  void join(QueuePair& qp) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&qp);
  }
  void leave(QueuePair& qp) {
    const std::lock_guard lock(mutex_);
    std::erase(waiting_, &qp);
  }
  // nullptr: nobody waits.
  QueuePair* next() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return nullptr;
    QueuePair* const first = waiting_.front();
    waiting_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::deque<QueuePair*> waiting_;
};

}  // namespace weir::rnic
