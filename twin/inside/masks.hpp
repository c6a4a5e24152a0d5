// A mask that a call puts in place while it waits (ppoll and its like).
#pragma once

#include <csignal>

namespace weir::twin {

class MaskForCall {
 public:
  explicit MaskForCall(const sigset_t* mask);  // nullptr: none
  ~MaskForCall();
  MaskForCall(const MaskForCall&) = delete;
  MaskForCall& operator=(const MaskForCall&) = delete;

 private:
  bool set_;
  sigset_t before_{};
};

}  // namespace weir::twin
