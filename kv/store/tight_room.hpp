// Rows of small collections: many keys have one, so each has little room to spare.
#pragma once

#include <algorithm>
#include <cstddef>

namespace weir::kv {

// Room for one more element in a std::vector. Doubling would leave up to half of a row empty; an eighth still
// keeps the moves for each element few.
template <class Row>
void make_tight_room(Row& row) {
  if (row.size() == row.capacity()) row.reserve(row.size() + std::max<std::size_t>(row.size() / 8, 1));
}

}  // namespace weir::kv
