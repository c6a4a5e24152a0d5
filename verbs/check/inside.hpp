// Whether this thread is inside the checker or the library behind it: what they allocate, free and create
// there is their own.
#pragma once

namespace weir::check {

class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool already() { return depth_ != 0; }

 private:
  // Found at a fixed offset from the thread pointer: looking it up must not allocate.
  [[gnu::tls_model("initial-exec")]] static inline thread_local int depth_ = 0;
};

}  // namespace weir::check
