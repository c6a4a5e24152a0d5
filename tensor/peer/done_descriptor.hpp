// A file descriptor that becomes readable when something that a peer works on is done, for programs that
// wait in poll(), epoll or asyncio (Peer::descriptor).
//
// A peer has no thread, so nothing happens while nobody waits for a result. From the first descriptor on a
// thread of its own does the work. Threading: signal() in any thread; the rest in the owner's.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "tensor/error.hpp"
#include "tensor/peer/caller_driven.hpp"

namespace weir::tensor {

class DoneDescriptor {
 public:
  // `driven` must outlive it. too_much: no descriptor, or no thread.
  static Result<std::unique_ptr<DoneDescriptor>> open(CallerDriven& driven);
  ~DoneDescriptor();  // the work stops
  DoneDescriptor(const DoneDescriptor&) = delete;
  DoneDescriptor& operator=(const DoneDescriptor&) = delete;

  int number() const { return number_; }
  void signal() const;

 private:
  DoneDescriptor(CallerDriven& driven, int number) : driven_(driven), number_(number) {}
  CallerDriven& driven_;
  const int number_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace weir::tensor
