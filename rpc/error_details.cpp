#include "rpc/error_details.hpp"

namespace weir::rpc {

std::string dotted_name(std::string_view spelt) {
  std::string name;
  while (!spelt.empty()) {
    for (const std::string_view nothing : {"{anonymous}::", "(anonymous namespace)::"})
      if (spelt.starts_with(nothing)) spelt.remove_prefix(nothing.size());
    const bool colons = spelt.starts_with("::");
    name += colons ? '.' : spelt.front();
    spelt.remove_prefix(colons ? 2 : 1);
  }
  return name;
}

}  // namespace weir::rpc
