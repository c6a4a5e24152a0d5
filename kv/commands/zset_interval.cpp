#include "kv/commands/zset_interval.hpp"

#include <algorithm>

#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

bool take_bound(std::string_view word, double& value, bool& open) {
  open = word.starts_with('(');
  if (open) word.remove_prefix(1);
  const auto parsed = parse_bound(word);
  if (!parsed) return false;
  value = *parsed;
  return true;
}

bool take_bound(std::string_view word, LexBound& bound) {
  using enum LexBound::Kind;
  if (word == "-") return bound = {lowest, {}}, true;
  if (word == "+") return bound = {highest, {}}, true;
  if (!word.starts_with('[') && !word.starts_with('(')) return false;
  bound = {word[0] == '[' ? closed : open, word.substr(1)};
  return true;
}

}  // namespace

bool LexInterval::below(std::string_view member) const {
  switch (low.kind) {
    case LexBound::Kind::lowest:
      return false;
    case LexBound::Kind::highest:
      return true;
    case LexBound::Kind::closed:
      return member < low.text;
    default:
      return member <= low.text;
  }
}
bool LexInterval::up_to(std::string_view member) const {
  switch (high.kind) {
    case LexBound::Kind::lowest:
      return false;
    case LexBound::Kind::highest:
      return true;
    case LexBound::Kind::closed:
      return member <= high.text;
    default:
      return member < high.text;
  }
}
bool LexInterval::empty() const {
  using enum LexBound::Kind;
  if (low.kind == highest || high.kind == lowest) return true;
  if (low.kind == lowest || high.kind == highest) return false;
  return low.text > high.text || (low.text == high.text && (low.kind == open || high.kind == open));
}

bool parse_interval(const Call& call, std::string_view low, std::string_view high, ScoreInterval& interval) {
  if (take_bound(low, interval.low, interval.low_open) &&
      take_bound(high, interval.high, interval.high_open)) {
    return true;
  }
  call.reply.error("ERR min or max is not a float");
  return false;
}

bool parse_interval(const Call& call, std::string_view low, std::string_view high, LexInterval& interval) {
  if (take_bound(low, interval.low) && take_bound(high, interval.high)) return true;
  call.reply.error("ERR min or max not valid string range item");
  return false;
}

Ranks ranks_in(const SortedSet& zset, const ScoreInterval& interval) {
  if (interval.empty()) return {};
  const std::size_t first = zset.count_scores([&](double score) { return interval.below(score); });
  const std::size_t end = zset.count_scores([&](double score) { return interval.up_to(score); });
  return {first, std::max(first, end)};
}

Ranks ranks_in(const SortedSet& zset, const LexInterval& interval) {
  if (interval.empty()) return {};
  const std::size_t first =
      zset.count_members([&](std::string_view member) { return interval.below(member); });
  const std::size_t end = zset.count_members([&](std::string_view member) { return interval.up_to(member); });
  return {first, std::max(first, end)};
}

}  // namespace weir::kv
