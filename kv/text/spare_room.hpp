// Frees the memory of containers that one request made large, once it is over. Otherwise an idle client, or a
// server whose clients have gone, would keep it for ever.
#pragma once

#include <cstddef>

namespace weir::kv {

inline constexpr std::size_t kept_places = 64;  // kept from one request to the next

// Empties a vector.
template <class List>
void empty_list(List& list) {
  list.clear();
  if (list.capacity() > kept_places) list.shrink_to_fit();
}

// For a hash table after an erase.
template <class Table>
void free_if_empty(Table& table) {
  if (table.empty() && table.capacity() > kept_places) table = {};
}

}  // namespace weir::kv
