#include "rpc/registry.hpp"

#include <algorithm>

namespace weir::rpc {

void Registry::add(const Registered& row) {
  const auto [found, fresh] = rows_.try_emplace(method_id(row.name), row);
  if (!fresh)
    throw std::logic_error("rpc: " + row.name + " has the number of " + found->second.name +
                           ", which the server has already: rename one");
}

std::vector<const Registered*> Registry::by_name() const {
  std::vector<const Registered*> rows;
  for (const auto& [number, row] : rows_) rows.push_back(&row);
  std::ranges::sort(rows, {}, [](const Registered* row) -> const std::string& { return row->name; });
  return rows;
}

}  // namespace weir::rpc
