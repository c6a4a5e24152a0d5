// Sorted sets: union, intersection and difference, of sets and sorted sets alike (a set's members count 1).
#include <algorithm>
#include <cmath>

#include "kv/call/call.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/commands/collection.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

enum class Operation : std::uint8_t { united, intersection, difference };
enum class Aggregate : std::uint8_t { sum, least, greatest };

// One operand: a sorted set, a set, or nothing.
struct Operand {
  SortedSet* zset = nullptr;
  Set* set = nullptr;
  double weight = 1;

  std::size_t size() const { return zset != nullptr ? zset->size() : set != nullptr ? set->size() : 0; }
  std::optional<double> score(std::string_view member) const {
    if (zset != nullptr) {
      const auto found = zset->find(member);
      return found ? std::optional(found->score()) : std::nullopt;
    }
    return set != nullptr && set->contains(member) ? std::optional(1.0) : std::nullopt;
  }
  // visit(member, score) -> whether to go on
  template <class Visit>
  void for_each(Visit visit) const {
    if (zset != nullptr) {
      zset->for_each([&](std::string_view member, double score) { return visit(member, score); });
    } else if (set != nullptr) {
      set->for_each([&](std::string_view member) { return visit(member, 1.0); });
    }
  }
};

struct Query {
  std::vector<Operand> operands;
  Aggregate aggregate = Aggregate::sum;
  bool with_scores = false;
  std::int64_t limit = 0;
};

double weighted(double score, double weight) {
  const double value = score * weight;
  return std::isnan(value) ? 0 : value;
}

// `b` may be no number: then it is neither less nor greater, and the sum is 0, as that of inf - inf.
double combined(double a, double b, Aggregate how) {
  switch (how) {
    case Aggregate::least:
      return b < a ? b : a;
    case Aggregate::greatest:
      return b > a ? b : a;
    default: {
      const double sum = a + b;
      return std::isnan(sum) ? 0 : sum;
    }
  }
}

// From the smallest on: fewer members are looked up, and in which order scores are added decides how their
// sum is rounded.
void sort_by_size(std::vector<Operand>& operands) { std::ranges::stable_sort(operands, {}, &Operand::size); }

bool parse_operands(const Call& call, std::size_t& at, Query& query) {
  using enum CountedKeys::Wrong;
  const CountedKeys counted = counted_keys_in(call.arguments, at);
  if (counted.wrong == number) {
    call.reply.error("ERR value is not an integer or out of range");
    return false;
  }
  if (counted.wrong == too_many) return call.syntax_error(), false;
  if (counted.keys.empty()) {
    call.reply.error("ERR at least 1 input key is needed for '" + call.command.full_name() + "' command");
    return false;
  }
  at = counted.end;
  for (const Argument& key : counted.keys) {
    Record* record = call.read(key.text);
    Operand operand;
    if (record != nullptr) {
      switch (record->value.type()) {
        case Type::zset:
          operand.zset = &record->value.zset();
          break;
        case Type::set:
          operand.set = &record->value.set();
          break;
        default:
          return call.typed(record, Type::zset);
      }
    }
    query.operands.push_back(operand);
  }
  return true;
}

enum class Form : std::uint8_t { reply, store, count };

bool parse_options(const Call& call, std::size_t at, Form form, Operation operation, Query& query) {
  while (at < call.count()) {
    const std::size_t left = call.count() - at;
    const bool aggregates = form != Form::count && operation != Operation::difference;
    if (aggregates && is_word(call[at], "WEIGHTS") && left > query.operands.size()) {
      ++at;
      for (Operand& operand : query.operands) {
        if (!call.number(at++, operand.weight, "ERR weight value is not a float")) return false;
      }
    } else if (aggregates && is_word(call[at], "AGGREGATE") && left >= 2) {
      const std::string_view how = call[at + 1];
      if (is_word(how, "SUM")) {
        query.aggregate = Aggregate::sum;
      } else if (is_word(how, "MIN")) {
        query.aggregate = Aggregate::least;
      } else if (is_word(how, "MAX")) {
        query.aggregate = Aggregate::greatest;
      } else {
        call.syntax_error();
        return false;
      }
      at += 2;
    } else if (form == Form::reply && is_word(call[at], "WITHSCORES")) {
      query.with_scores = true;
      ++at;
    } else if (form == Form::count && is_word(call[at], "LIMIT") && left >= 2) {
      if (!positive(call, at + 1, query.limit, "ERR LIMIT can't be negative")) return false;
      at += 2;
    } else {
      call.syntax_error();
      return false;
    }
  }
  return true;
}

// Results are made without regard to the small form, which would change their scores.
constexpr SmallLimits never_small{0, 0};

void unite(Query query, SortedSet& result) {
  sort_by_size(query.operands);
  for (const Operand& operand : query.operands) {
    operand.for_each([&](std::string_view member, double score) {
      const double value = weighted(score, operand.weight);
      if (const auto found = result.find(member)) {
        result.rescore(*found, combined(found->score(), value, query.aggregate));
      } else {
        result.insert(member, value, never_small);
      }
      return true;
    });
  }
}

// Visits members of every operand with the aggregated score until `visit` returns false.
template <class Visit>
void intersect(Query query, Visit visit) {
  sort_by_size(query.operands);
  const Operand& smallest = query.operands[0];
  smallest.for_each([&](std::string_view member, double score) {
    double value = weighted(score, smallest.weight);
    for (std::size_t i = 1; i < query.operands.size(); ++i) {
      const auto other = query.operands[i].score(member);
      if (!other) return true;
      value = combined(value, *other * query.operands[i].weight, query.aggregate);
    }
    return visit(member, value);
  });
}

void subtract(const Query& query, SortedSet& result) {
  query.operands[0].for_each([&](std::string_view member, double score) {
    const bool elsewhere = std::any_of(query.operands.begin() + 1, query.operands.end(),
                                       [&](const Operand& other) { return other.score(member).has_value(); });
    if (!elsewhere) result.insert(member, score, never_small);
    return true;
  });
}

SortedSet combine(Operation operation, const Query& query) {
  SortedSet result;
  switch (operation) {
    case Operation::united:
      unite(query, result);
      break;
    case Operation::intersection:
      intersect(query, [&](std::string_view member, double score) {
        result.insert(member, score, never_small);
        return true;
      });
      break;
    case Operation::difference:
      subtract(query, result);
      break;
  }
  return result;
}

void reply_combined(const Call& call, Operation operation) {
  std::size_t at = 1;
  Query query;
  if (!parse_operands(call, at, query) || !parse_options(call, at, Form::reply, operation, query)) return;
  const SortedSet result = combine(operation, query);
  const bool pairs = query.with_scores && call.reply.resp3();
  call.reply.array(result.size() * (query.with_scores && !pairs ? 2 : 1));
  result.for_each([&](std::string_view member, double score) {
    if (pairs) call.reply.array(2);
    call.reply.bulk(member);
    if (query.with_scores) call.reply.real(score);
    return true;
  });
}

void store_combined(const Call& call, Operation operation) {
  std::size_t at = 2;
  Query query;
  if (!parse_operands(call, at, query) || !parse_options(call, at, Form::store, operation, query)) return;
  SortedSet result = combine(operation, query);
  result.make_small_within(zset_limits(call));
  call.reply.integer(static_cast<std::int64_t>(store_collection(call, call[1], std::move(result))));
}

void zunion(const Call& call) { reply_combined(call, Operation::united); }
void zinter(const Call& call) { reply_combined(call, Operation::intersection); }
void zdiff(const Call& call) { reply_combined(call, Operation::difference); }
void zunionstore(const Call& call) { store_combined(call, Operation::united); }
void zinterstore(const Call& call) { store_combined(call, Operation::intersection); }
void zdiffstore(const Call& call) { store_combined(call, Operation::difference); }

void zintercard(const Call& call) {
  std::size_t at = 1;
  Query query;
  if (!parse_operands(call, at, query) ||
      !parse_options(call, at, Form::count, Operation::intersection, query))
    return;
  std::int64_t count = 0;
  intersect(query, [&](std::string_view, double) { return ++count != query.limit; });
  call.reply.integer(count);
}

}  // namespace

std::span<const Command> zset_store_commands() {
  using namespace flag;
  constexpr std::uint32_t look = readonly | movablekeys;
  constexpr std::uint32_t store = write | denyoom | movablekeys;
  static constexpr Command commands[] = {
      {"zunion", -3, look, 0, 0, 0, zunion, "sorted-set", "Returns members of any of the sets."},
      {"zinter", -3, look, 0, 0, 0, zinter, "sorted-set", "Returns members of all of the sets."},
      {"zdiff", -3, look, 0, 0, 0, zdiff, "sorted-set", "Returns members of the first set only."},
      {"zunionstore", -4, store, 1, 1, 1, zunionstore, "sorted-set", "Stores members of any of the sets."},
      {"zinterstore", -4, store, 1, 1, 1, zinterstore, "sorted-set", "Stores members of all of the sets."},
      {"zdiffstore", -4, store, 1, 1, 1, zdiffstore, "sorted-set", "Stores members of the first set only."},
      {"zintercard", -3, look, 0, 0, 0, zintercard, "sorted-set", "Counts members of all of the sets."},
  };
  return commands;
}

}  // namespace weir::kv
