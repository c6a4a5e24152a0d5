#include "cli/weir/seeds/shrink.hpp"

namespace weir::command {

using rnic::weak::bit;
using rnic::weak::Plan;

Needed shrink(const Plan& failed, const std::function<bool(const Plan&)>& fails) {
  Needed needed;
  for (const auto& row : rnic::weak::table)
    if (failed.has(row.weakness) && fails({failed.seed, bit(row.weakness)}))
      needed.alone.push_back(row.weakness);
  if (!needed.alone.empty() || !fails(failed)) return needed;
  Plan left = failed;
  for (const auto& row : rnic::weak::table) {
    const Plan without{left.seed, left.weaknesses & ~bit(row.weakness)};
    if (left.has(row.weakness) && fails(without)) left = without;
  }
  for (const auto& row : rnic::weak::table)
    if (left.has(row.weakness)) needed.together.push_back(row.weakness);
  return needed;
}

}  // namespace weir::command
