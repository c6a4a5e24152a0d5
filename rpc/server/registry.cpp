#include "rpc/server/registry.hpp"

#include <algorithm>

namespace weir::rpc {

void Registry::add(const Registered& row) {
  const auto [found, fresh] = rows_.try_emplace(method_id(row.name), row);
  if (!fresh)
    throw std::logic_error("rpc: " + row.name + " has the number of " + found->second.name +
                           ", which the server has already: rename one");
}

void Registry::alias(std::string_view name, std::string_view of) {
  const Registered* known = find(method_id(of));
  if (known == nullptr || known->name != of)
    throw std::logic_error("rpc: " + std::string(of) + " is to be called " + std::string(name) +
                           ", too, and was not added");
  Registered row = *known;
  row.name = name;
  add(row);
}

std::vector<const Registered*> Registry::by_name() const {
  std::vector<const Registered*> rows;
  for (const auto& [number, row] : rows_) rows.push_back(&row);
  std::ranges::sort(rows, {}, [](const Registered* row) -> const std::string& { return row->name; });
  return rows;
}

}  // namespace weir::rpc
