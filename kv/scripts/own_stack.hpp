// A separate stack for work that may have to pause in the middle, such as a script that takes too long.
//
// The work runs inside run() and resume(), on the caller's thread. It may call suspend() at any depth. Then
// run() or resume() returns to its caller, and the next resume() continues after suspend(). There is one work
// at a time. The stack is made at first use and kept, so a run costs two switches and no allocation.
//
// Threading: the server's one thread.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <exception>
#include <functional>

namespace weir::kv {

class OwnStack {
 public:
  OwnStack() = default;
  ~OwnStack();  // no work may be in progress
  OwnStack(const OwnStack&) = delete;
  OwnStack& operator=(const OwnStack&) = delete;

  // True: the work is over; its exceptions are rethrown here. False: it suspended itself.
  bool run(std::function<void()> work);
  bool resume();
  // Call only within the work.
  void suspend();

  bool inside() const { return inside_; }
  bool suspended() const { return work_ != nullptr && !inside_; }

 private:
  // What AddressSanitizer must be told about a switch of stacks.
  struct Annotation {
    void* fake_stack = nullptr;
    const void* bottom = nullptr;
    std::size_t size = 0;
  };

  bool enter();
  void serve();

  boost::context::fiber stack_;
  boost::context::fiber caller_;
  std::function<void()> work_;
  std::exception_ptr thrown_;
  Annotation outside_, here_;
  bool inside_ = false;
  bool ending_ = false;
};

}  // namespace weir::kv
