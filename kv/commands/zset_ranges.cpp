// Sorted sets: ranges by rank, score or bytes; returned, stored or removed.
#include <algorithm>

#include "kv/call/call.hpp"
#include "kv/commands/collection.hpp"
#include "kv/commands/zset_interval.hpp"

namespace weir::kv {

namespace {

enum class By : std::uint8_t { rank, score, lex };

struct RangeQuery {
  By by = By::rank;
  bool reverse = false;
  bool with_scores = false;
  std::int64_t offset = 0;
  std::int64_t count = -1;  // negative: no limit
};

// A range of a sorted set.
struct ZsetRange {
  SortedSet* zset = nullptr;  // null: there is no such key
  Ranks ranks;
};

Walk walk_of(const RangeQuery& query) { return query.reverse ? Walk::backward : Walk::forward; }

// What LIMIT leaves of the members, which are counted in the order asked for.
Ranks limited(Ranks ranks, const RangeQuery& query) {
  if (query.offset < 0) return {};
  const std::size_t skipped = std::min(static_cast<std::size_t>(query.offset), ranks.size());
  std::size_t count = ranks.size() - skipped;
  if (query.count >= 0) count = std::min(static_cast<std::size_t>(query.count), count);
  if (query.reverse) return {ranks.end - skipped - count, ranks.end - skipped};
  return {ranks.first + skipped, ranks.first + skipped + count};
}

Ranks clamped(const SortedSet& zset, std::int64_t start, std::int64_t stop, bool reverse) {
  if (!clamp_range(start, stop, zset.size())) return {};
  const auto first = static_cast<std::size_t>(start);
  const auto end = static_cast<std::size_t>(stop) + 1;
  if (reverse) return {zset.size() - end, zset.size() - first};
  return {first, end};
}

// Options behind "min max", from argument `at`; those that the command fixes are set in `query` already.
bool parse_options(const Call& call, std::size_t at, RangeQuery& query, bool chooses, bool stores) {
  for (; at < call.count(); ++at) {
    const std::string_view word = call[at];
    if (!stores && is_word(word, "WITHSCORES")) {
      query.with_scores = true;
    } else if (is_word(word, "LIMIT") && at + 2 < call.count()) {
      if (!call.integer(at + 1, query.offset) || !call.integer(at + 2, query.count)) return false;
      at += 2;
    } else if (chooses && !query.reverse && is_word(word, "REV")) {
      query.reverse = true;
    } else if (chooses && query.by == By::rank && is_word(word, "BYSCORE")) {
      query.by = By::score;
    } else if (chooses && query.by == By::rank && is_word(word, "BYLEX")) {
      query.by = By::lex;
    } else {
      call.syntax_error();
      return false;
    }
  }
  if (query.count != -1 && query.by == By::rank) {  // Redis does not see a LIMIT with the count -1
    call.reply.error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    return false;
  }
  if (query.with_scores && query.by == By::lex) {
    call.reply.error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return false;
  }
  return true;
}

// Runs the query on the set of `key`; the bounds are arguments `at` and `at` + 1. False: the client was
// answered.
bool find_range(const Call& call, std::string_view key, std::size_t at, const RangeQuery& query,
                ZsetRange& range) {
  // Reversed, the higher bound comes first.
  const std::string_view low = call[query.reverse ? at + 1 : at];
  const std::string_view high = call[query.reverse ? at : at + 1];
  std::int64_t start = 0;
  std::int64_t stop = 0;
  ScoreInterval scores;
  LexInterval members;
  switch (query.by) {
    case By::rank:
      if (!call.integer(at, start) || !call.integer(at + 1, stop)) return false;
      break;
    case By::score:
      if (!parse_interval(call, low, high, scores)) return false;
      break;
    case By::lex:
      if (!parse_interval(call, low, high, members)) return false;
      break;
  }
  if (!read_as(call, key, range.zset)) return false;
  if (range.zset == nullptr) return true;
  switch (query.by) {
    case By::rank:
      range.ranks = clamped(*range.zset, start, stop, query.reverse);
      break;
    case By::score:
      range.ranks = limited(ranks_in(*range.zset, scores), query);
      break;
    case By::lex:
      range.ranks = limited(ranks_in(*range.zset, members), query);
      break;
  }
  return true;
}

void reply_range(const Call& call, RangeQuery query, bool chooses) {
  ZsetRange range;
  if (!parse_options(call, 4, query, chooses, false) || !find_range(call, call[1], 2, query, range)) return;
  const bool pairs = query.with_scores && call.reply.resp3();
  call.reply.array(range.ranks.size() * (query.with_scores && !pairs ? 2 : 1));
  if (range.zset == nullptr) return;
  range.zset->for_each(range.ranks, walk_of(query), [&](std::string_view member, double score) {
    if (pairs) call.reply.array(2);
    call.reply.bulk(member);
    if (query.with_scores) call.reply.real(score);
    return true;
  });
}

void zrange(const Call& call) { reply_range(call, {}, true); }
void zrevrange(const Call& call) { reply_range(call, {.reverse = true}, false); }
void zrangebyscore(const Call& call) { reply_range(call, {.by = By::score}, false); }
void zrevrangebyscore(const Call& call) { reply_range(call, {.by = By::score, .reverse = true}, false); }
void zrangebylex(const Call& call) { reply_range(call, {.by = By::lex}, false); }
void zrevrangebylex(const Call& call) { reply_range(call, {.by = By::lex, .reverse = true}, false); }

void zrangestore(const Call& call) {
  RangeQuery query;
  ZsetRange range;
  if (!parse_options(call, 5, query, true, true) || !find_range(call, call[2], 3, query, range)) return;
  SortedSet result;
  if (range.zset != nullptr) {
    range.zset->for_each(range.ranks, walk_of(query), [&](std::string_view member, double score) {
      result.insert(member, score, zset_limits(call));
      return true;
    });
  }
  call.reply.integer(static_cast<std::int64_t>(store_collection(call, call[1], std::move(result))));
}

void remove_range(const Call& call, By by) {
  RangeQuery query;
  query.by = by;
  ZsetRange range;
  if (!find_range(call, call[1], 2, query, range)) return;
  if (range.ranks.empty()) return call.reply.integer(0);
  if (!write_as(call, call[1], range.zset)) return;
  range.zset->erase(range.ranks);
  settle(call, call[1], *range.zset);
  call.reply.integer(static_cast<std::int64_t>(range.ranks.size()));
}
void zremrangebyrank(const Call& call) { remove_range(call, By::rank); }
void zremrangebyscore(const Call& call) { remove_range(call, By::score); }
void zremrangebylex(const Call& call) { remove_range(call, By::lex); }

}  // namespace

std::span<const Command> zset_range_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"zrange", -4, readonly, 1, 1, 1, zrange, "sorted-set", "Returns a range of members."},
      {"zrevrange", -4, readonly, 1, 1, 1, zrevrange, "sorted-set", "Returns a range by rank, reversed."},
      {"zrangebyscore", -4, readonly, 1, 1, 1, zrangebyscore, "sorted-set", "Returns a range by score."},
      {"zrevrangebyscore", -4, readonly, 1, 1, 1, zrevrangebyscore, "sorted-set",
       "Returns a range by score, reversed."},
      {"zrangebylex", -4, readonly, 1, 1, 1, zrangebylex, "sorted-set",
       "Returns a range by the members' bytes."},
      {"zrevrangebylex", -4, readonly, 1, 1, 1, zrevrangebylex, "sorted-set",
       "Returns a range by bytes, reversed."},
      {"zrangestore", -5, write | denyoom, 1, 2, 1, zrangestore, "sorted-set", "Stores a range of members."},
      {"zremrangebyrank", 4, write, 1, 1, 1, zremrangebyrank, "sorted-set", "Removes members by rank."},
      {"zremrangebyscore", 4, write, 1, 1, 1, zremrangebyscore, "sorted-set", "Removes members by score."},
      {"zremrangebylex", 4, write, 1, 1, 1, zremrangebylex, "sorted-set", "Removes members by their bytes."},
  };
  return commands;
}

}  // namespace weir::kv
