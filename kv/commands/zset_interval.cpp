#include "kv/commands/zset_interval.hpp"

#include "kv/number.hpp"

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

// Nodes from the first that is not below to the last that is not beyond.
template <class Below, class UpTo>
NodeRange cut(const SortedSet& zset, Below below, UpTo up_to) {
  const ScoredNode* first = zset.order().first_not(below);
  const ScoredNode* last = zset.order().last_of(up_to);
  if (first == nullptr || last == nullptr || !up_to(*first) || below(*last)) return {};
  return {first, last};
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

NodeRange nodes_in(const SortedSet& zset, const ScoreInterval& interval) {
  if (interval.empty()) return {};
  return cut(
      zset, [&](const ScoredNode& node) { return interval.below(node.score); },
      [&](const ScoredNode& node) { return interval.up_to(node.score); });
}

NodeRange nodes_in(const SortedSet& zset, const LexInterval& interval) {
  if (interval.empty()) return {};
  return cut(
      zset, [&](const ScoredNode& node) { return interval.below(node.member()); },
      [&](const ScoredNode& node) { return interval.up_to(node.member()); });
}

}  // namespace weir::kv
