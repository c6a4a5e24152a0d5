// A list: elements in order, cheap at both ends.
#pragma once

#include <algorithm>
#include <deque>

#include "kv/bytes.hpp"

namespace weir::kv {

class List {
 public:
  using Elements = std::deque<Bytes>;

  Elements elements;

  std::size_t size() const { return elements.size(); }
  bool empty() const { return elements.empty(); }
  // As Value::free_some().
  bool free_some(std::size_t most) {
    const std::size_t some = std::min(most, elements.size());
    elements.erase(elements.begin(), elements.begin() + static_cast<std::ptrdiff_t>(some));
    return !elements.empty();
  }
};

}  // namespace weir::kv
