// A list: elements in order, cheap at both ends.
#pragma once

#include <deque>

#include "kv/bytes.hpp"

namespace weir::kv {

class List {
 public:
  using Elements = std::deque<Bytes>;

  Elements elements;

  std::size_t size() const { return elements.size(); }
  bool empty() const { return elements.empty(); }
};

}  // namespace weir::kv
