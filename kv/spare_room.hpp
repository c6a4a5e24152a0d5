// Containers that one request made large give their memory back when it is over: an idle client, and a server
// whose clients went, must not keep it for ever.
#pragma once

#include <cstddef>

namespace weir::kv {

inline constexpr std::size_t kept_places = 64;  // from request to request

// Of a vector: empties it.
template <class List>
void empty_list(List& list) {
  list.clear();
  if (list.capacity() > kept_places) list.shrink_to_fit();
}

// Of a hash table that something was erased from.
template <class Table>
void free_if_empty(Table& table) {
  if (table.empty() && table.capacity() > kept_places) table = {};
}

}  // namespace weir::kv
