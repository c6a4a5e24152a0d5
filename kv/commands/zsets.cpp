// Sorted sets: members and scores. Ranges are in zset_ranges.cpp, combinations in zset_store.cpp, popping in
// zset_pop.cpp.
#include <absl/container/flat_hash_set.h>

#include "kv/call/call.hpp"
#include "kv/commands/collection.hpp"
#include "kv/commands/random_choice.hpp"
#include "kv/commands/zset_adding.hpp"
#include "kv/commands/zset_interval.hpp"

namespace weir::kv {

namespace {

std::optional<SortedSet::Found> find_in(const SortedSet* zset, std::string_view member) {
  return zset == nullptr ? std::nullopt : zset->find(member);
}

// Reads the options of ZADD; `at` ends at the first score. Answers when they do not go together.
bool parse_add_options(const Call& call, std::size_t& at, AddOptions& options) {
  for (at = 2; at < call.count(); ++at) {
    const std::string_view word = call[at];
    bool* option = is_word(word, "NX")     ? &options.only_new
                   : is_word(word, "XX")   ? &options.only_old
                   : is_word(word, "GT")   ? &options.only_greater
                   : is_word(word, "LT")   ? &options.only_less
                   : is_word(word, "CH")   ? &options.count_changed
                   : is_word(word, "INCR") ? &options.increment
                                           : nullptr;
    if (option == nullptr) break;
    *option = true;
  }
  auto wrong = [&](std::string_view error) {
    call.reply.error(error);
    return false;
  };
  const std::size_t words = call.count() - at;
  if (words == 0 || words % 2 != 0) return wrong("ERR syntax error");
  if (options.only_new && options.only_old)
    return wrong("ERR XX and NX options at the same time are not compatible");
  if ((options.only_greater && options.only_new) || (options.only_less && options.only_new) ||
      (options.only_greater && options.only_less)) {
    return wrong("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
  if (options.increment && words > 2)
    return wrong("ERR INCR option supports a single increment-element pair");
  return true;
}

// Scores and members from argument `at` on.
void add_members(const Call& call, std::size_t at, const AddOptions& options) {
  std::vector<ScoredMember> members;
  for (std::size_t i = at; i < call.count(); i += 2) {
    if (!call.number(i, members.emplace_back().score)) return;
    members.back().member = call[i + 1];
  }
  add_scored(call, members, options);
}

void zadd(const Call& call) {
  std::size_t at = 0;
  AddOptions options;
  if (parse_add_options(call, at, options)) add_members(call, at, options);
}
void zincrby(const Call& call) {
  AddOptions options;
  options.increment = true;
  add_members(call, 2, options);
}

void zrem(const Call& call) {
  SortedSet* zset = nullptr;
  if (!write_as(call, call[1], zset)) return;
  if (zset == nullptr) return call.reply.integer(0);
  std::int64_t removed = 0;
  for (std::size_t i = 2; i < call.count(); ++i) {
    if (const auto found = zset->find(call[i])) {
      zset->erase(*found);
      ++removed;
    }
  }
  if (removed != 0) settle(call, call[1], *zset);
  call.reply.integer(removed);
}

void zcard(const Call& call) {
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  call.reply.integer(zset == nullptr ? 0 : static_cast<std::int64_t>(zset->size()));
}

void zscore(const Call& call) {
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  const auto found = find_in(zset, call[2]);
  found ? call.reply.real(found->score()) : call.reply.null();
}

void zmscore(const Call& call) {
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i) {
    const auto found = find_in(zset, call[i]);
    found ? call.reply.real(found->score()) : call.reply.null();
  }
}

void reply_rank(const Call& call, bool reverse) {
  if (call.count() > 4)
    return call.reply.error("ERR wrong number of arguments for '" + call.command.full_name() + "' command");
  const bool with_score = call.count() == 4;
  if (with_score && !is_word(call[3], "WITHSCORE")) return call.syntax_error();
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  const auto found = find_in(zset, call[2]);
  if (!found) return with_score ? call.reply.null_array() : call.reply.null();
  const std::size_t rank = zset->rank(*found);
  if (with_score) call.reply.array(2);
  call.reply.integer(static_cast<std::int64_t>(reverse ? zset->size() - 1 - rank : rank));
  if (with_score) call.reply.real(found->score());
}
void zrank(const Call& call) { reply_rank(call, false); }
void zrevrank(const Call& call) { reply_rank(call, true); }

template <class Interval>
void count_in(const Call& call) {
  Interval interval;
  if (!parse_interval(call, call[2], call[3], interval)) return;
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  call.reply.integer(zset == nullptr ? 0 : static_cast<std::int64_t>(ranks_in(*zset, interval).size()));
}
void zcount(const Call& call) { count_in<ScoreInterval>(call); }
void zlexcount(const Call& call) { count_in<LexInterval>(call); }

std::vector<SortedSet::Scored> members_of(const SortedSet& zset) {
  std::vector<SortedSet::Scored> members;
  members.reserve(zset.size());
  zset.for_each([&](const StoredText& member, double score) {
    members.push_back({member, score});
    return true;
  });
  return members;
}

void zrandmember(const Call& call) {
  RandomChoice choice;
  if (!parse_random_choice(call, "WITHSCORES", choice)) return;
  SortedSet* zset = nullptr;
  if (!read_as(call, call[1], zset)) return;
  auto random = [&] { return call.server.random(); };
  if (!choice.counted) {
    if (zset == nullptr) return call.reply.null();
    return call.reply.bulk(zset->at(random() % zset->size()).member);
  }
  if (zset == nullptr || choice.count == 0) return call.reply.array(0);
  // Those of a small one are found from its beginning on, so they are drawn from a list of them all.
  const std::vector<SortedSet::Scored> few =
      zset->small() ? members_of(*zset) : std::vector<SortedSet::Scored>();
  const auto draw = [&] {
    const std::size_t rank = random() % zset->size();
    return few.empty() ? zset->at(rank) : few[rank];
  };
  const bool nested = choice.with_values && call.reply.resp3();
  const auto header = [&](std::size_t n) { call.reply.array(choice.with_values && !nested ? n * 2 : n); };
  const auto say = [&](const SortedSet::Scored& one) {
    if (nested) call.reply.array(2);
    call.reply.bulk(one.member);
    if (choice.with_values) call.reply.real(one.score);
  };
  if (choice.repeat) {
    header(choice.count);
    for (std::size_t i = 0; i < choice.count; ++i) say(draw());
    return;
  }
  const auto chosen = choose_different<absl::flat_hash_set<const char*>>(
      few.empty() ? zset->size() : 0, choice.count, draw,
      [](const SortedSet::Scored& one) { return one.member.view().data(); },
      [&] { return few.empty() ? members_of(*zset) : few; }, random);
  header(chosen.size());
  for (const SortedSet::Scored& one : chosen) say(one);
}

}  // namespace

std::span<const Command> zset_commands() {
  using namespace flag;
  constexpr std::uint32_t change = write | denyoom | fast;
  constexpr std::uint32_t look = readonly | fast;
  static constexpr Command commands[] = {
      {"zadd", -4, change, 1, 1, 1, zadd, "sorted-set", "Adds members or changes their scores."},
      {"zincrby", 4, change, 1, 1, 1, zincrby, "sorted-set", "Adds to a member's score."},
      {"zrem", -3, write | fast, 1, 1, 1, zrem, "sorted-set", "Removes members."},
      {"zcard", 2, look, 1, 1, 1, zcard, "sorted-set", "Returns the number of members."},
      {"zscore", 3, look, 1, 1, 1, zscore, "sorted-set", "Returns a member's score."},
      {"zmscore", -3, look, 1, 1, 1, zmscore, "sorted-set", "Returns several members' scores."},
      {"zrank", -3, look, 1, 1, 1, zrank, "sorted-set", "Returns a member's rank from the lowest score."},
      {"zrevrank", -3, look, 1, 1, 1, zrevrank, "sorted-set",
       "Returns a member's rank from the highest score."},
      {"zcount", 4, look, 1, 1, 1, zcount, "sorted-set", "Counts members by score."},
      {"zlexcount", 4, look, 1, 1, 1, zlexcount, "sorted-set", "Counts members by their bytes."},
      {"zrandmember", -2, readonly, 1, 1, 1, zrandmember, "sorted-set", "Returns random members."},
  };
  return commands;
}

}  // namespace weir::kv
