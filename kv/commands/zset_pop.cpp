// Sorted sets: taking the lowest or highest members, at once or when there are some.
#include <algorithm>

#include "kv/call/call.hpp"
#include "kv/commands/collection.hpp"
#include "kv/commands/multi_pop.hpp"

namespace weir::kv {

namespace {

enum class Extreme : std::uint8_t { lowest, highest };

const char* popping(Extreme which) { return which == Extreme::lowest ? "ZPOPMIN" : "ZPOPMAX"; }

void reply_and_take(const Call& call, SortedSet& zset, Extreme which) {
  const std::size_t rank = which == Extreme::lowest ? 0 : zset.size() - 1;
  const SortedSet::Scored one = zset.at(rank);
  call.reply.bulk(one.member);
  call.reply.real(one.score);
  zset.erase(Ranks{rank, rank + 1});
}

void pop(const Call& call, Extreme which) {
  if (call.count() > 3) return call.syntax_error();
  const bool counted = call.count() == 3;
  std::int64_t count = 1;
  if (counted && !positive(call, 2, count)) return;
  SortedSet* zset = nullptr;
  if (!write_as(call, call[1], zset)) return;
  if (zset == nullptr || count == 0) return call.reply.array(0);
  const std::size_t n = std::min(static_cast<std::size_t>(count), zset->size());
  const bool pairs = counted && call.reply.resp3();
  call.reply.array(pairs ? n : n * 2);
  for (std::size_t i = 0; i < n; ++i) {
    if (pairs) call.reply.array(2);
    reply_and_take(call, *zset, which);
  }
  settle(call, call[1], *zset);
}
void zpopmin(const Call& call) { pop(call, Extreme::lowest); }
void zpopmax(const Call& call) { pop(call, Extreme::highest); }

void pop_or_wait(const Call& call, Extreme which) {
  std::int64_t timeout_ms = 0;
  if (!timeout(call, call.count() - 1, timeout_ms)) return;
  const Arguments keys = call.arguments.subspan(1, call.count() - 2);
  for (const Argument& key : keys) {
    SortedSet* zset = nullptr;
    if (!blocked_read(call, key.text, zset)) return;
    if (zset == nullptr) continue;
    call.reply.array(3);
    call.reply.bulk(key.text);
    reply_and_take(call, *zset, which);
    call.replay_as({popping(which), key});
    return settle(call, key.text, *zset);
  }
  call.server.wait_for(call, key_names(keys), timeout_ms, NullForm::array);
}
void bzpopmin(const Call& call) { pop_or_wait(call, Extreme::lowest); }
void bzpopmax(const Call& call) { pop_or_wait(call, Extreme::highest); }

bool parse_extreme(std::string_view word, Extreme& which) {
  if (is_word(word, "MIN")) return which = Extreme::lowest, true;
  if (is_word(word, "MAX")) return which = Extreme::highest, true;
  return false;
}

bool pop_from_first(const Call& call, const MultiPop<Extreme>& pop) {
  const KeyEvent event{'z', pop.end == Extreme::lowest ? "zpopmin" : "zpopmax"};
  return multi_pop<SortedSet>(call, pop, event, popping(pop.end), [&](SortedSet& zset, Extreme which) {
    call.reply.array(2);
    reply_and_take(call, zset, which);
  });
}

void zmpop(const Call& call) {
  MultiPop<Extreme> pop;
  if (parse_multi_pop(call, 1, parse_extreme, pop) && !pop_from_first(call, pop)) call.reply.null_array();
}
void bzmpop(const Call& call) {
  std::int64_t timeout_ms = 0;
  MultiPop<Extreme> pop;
  if (!parse_multi_pop(call, 2, parse_extreme, pop) || !timeout(call, 1, timeout_ms) ||
      pop_from_first(call, pop))
    return;
  call.server.wait_for(call, key_names(pop.keys), timeout_ms, NullForm::array);
}

}  // namespace

std::span<const Command> zset_pop_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"zpopmin", -2, write | fast, 1, 1, 1, zpopmin, "sorted-set", "Takes the lowest members."},
      {"zpopmax", -2, write | fast, 1, 1, 1, zpopmax, "sorted-set", "Takes the highest members."},
      {"bzpopmin", -3, write | noscript | blocking | fast, 1, -2, 1, bzpopmin, "sorted-set",
       "Takes the lowest member, waits for one."},
      {"bzpopmax", -3, write | noscript | blocking | fast, 1, -2, 1, bzpopmax, "sorted-set",
       "Takes the highest member, waits for one."},
      {"zmpop", -4, write | movablekeys, 0, 0, 0, zmpop, "sorted-set",
       "Takes members of the first set that has some."},
      {"bzmpop", -5, write | blocking | movablekeys, 0, 0, 0, bzmpop, "sorted-set",
       "Takes members of the first set that has some, waits for one."},
  };
  return commands;
}

}  // namespace weir::kv
