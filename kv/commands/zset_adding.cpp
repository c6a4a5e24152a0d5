#include "kv/commands/zset_adding.hpp"

#include <cmath>

#include "kv/commands/collection.hpp"

namespace weir::kv {

namespace {

enum class Added : std::uint8_t { created, updated, unchanged, refused, not_a_number };

Added add_one(const Call& call, SortedSet& zset, std::string_view member, double& score,
              const AddOptions& options) {
  const auto old = zset.find(member);
  if (!old) {
    if (options.only_old) return Added::refused;
    zset.insert(member, score, zset_limits(call));
    return Added::created;
  }
  if (options.only_new) return Added::refused;
  if (options.increment) {
    score += old->score();
    if (std::isnan(score)) return Added::not_a_number;
  }
  if ((options.only_less && score >= old->score()) || (options.only_greater && score <= old->score())) {
    return Added::refused;
  }
  if (score == old->score()) return Added::unchanged;
  zset.rescore(*old, score);
  return Added::updated;
}

}  // namespace

void add_scored(const Call& call, std::span<ScoredMember> members, const AddOptions& options) {
  SortedSet* zset = nullptr;
  if (!write_as(call, call[1], zset)) return;
  if (zset == nullptr) {
    if (options.only_old) return options.increment ? call.reply.null() : call.reply.integer(0);
    zset = &make_zset(call, call[1]);
  }
  std::int64_t created = 0;
  std::int64_t updated = 0;
  Added last = Added::refused;
  for (ScoredMember& each : members) {
    last = add_one(call, *zset, each.member, each.score, options);
    created += last == Added::created ? 1 : 0;
    updated += last == Added::updated ? 1 : 0;
    if (last == Added::not_a_number) break;
  }
  if (created + updated != 0) call.changed(call[1], {'z', options.increment ? "zincr" : "zadd"});
  if (last == Added::not_a_number) return call.reply.error("ERR resulting score is not a number (NaN)");
  if (options.increment)
    return last == Added::refused ? call.reply.null() : call.reply.real(members[0].score);
  call.reply.integer(created + (options.count_changed ? updated : 0));
}

}  // namespace weir::kv
