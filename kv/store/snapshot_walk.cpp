#include "kv/store/snapshot_walk.hpp"

#include <utility>

namespace weir::kv {

SnapshotWalk::SnapshotWalk(std::uint32_t number, Databases& databases, const bool& changing,
                           LazyFree& lazy_free, Show show)
    : databases_(&databases), shown_(number, databases.size(), changing, lazy_free, std::move(show)) {
  for (const auto& db : databases) db->take_part_in(&shown_);
}

SnapshotWalk::~SnapshotWalk() {
  for (const auto& db : *databases_) db->take_part_in(nullptr);
}

bool SnapshotWalk::step() {
  if (shown_.step_in_left()) return true;
  const auto next = shown_.unfinished();
  if (!next) return false;
  shown_.step_in(*next, (*databases_)[static_cast<std::size_t>(*next)]->records());
  return true;
}

}  // namespace weir::kv
