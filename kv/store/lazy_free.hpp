// Large removed values, freed a little at a time: freeing a million members takes a tenth of a second, and
// the client that removes them, and everybody else, would wait for it.
//
// Threading: none. The owner calls free_some() between other work until nothing is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "kv/store/record.hpp"

namespace weir::kv {

class LazyFree {
 public:
  // A value of more elements than this is freed here.
  static constexpr std::size_t large = 64;

  // Takes the value if it is large; otherwise the caller must free it.
  void take_if_large(Value& value);
  void take(Records records);

  bool any() const { return !values_.empty() || !tables_.empty(); }
  std::size_t size() const { return values_.size() + tables_.size(); }
  std::uint64_t freed() const { return freed_; }  // values and tables, ever

  // About that many elements, one at least.
  void free_some(std::size_t elements);
  // For a caller that would rather wait.
  void free_all() {
    while (any()) free_some(1000);
  }

 private:
  std::deque<Value> values_;
  std::deque<Records> tables_;
  std::uint64_t freed_ = 0;
};

}  // namespace weir::kv
