// Intervals of sorted sets as commands write them: by score ("(1", "-inf") and by member ("[a", "(b", "-",
// "+").
#pragma once

#include <string_view>

#include "kv/commands/collection.hpp"

namespace weir::kv {

struct ScoreInterval {
  double low = 0, high = 0;
  bool low_open = false, high_open = false;

  bool below(double score) const { return low_open ? score <= low : score < low; }     // left of the interval
  bool up_to(double score) const { return high_open ? score < high : score <= high; }  // not right of it
  bool empty() const { return low > high || (low == high && (low_open || high_open)); }
};

struct LexBound {
  enum class Kind : std::uint8_t { lowest, highest, closed, open };
  Kind kind = Kind::lowest;
  std::string_view text;
};
struct LexInterval {
  LexBound low, high;

  bool below(std::string_view member) const;
  bool up_to(std::string_view member) const;
  bool empty() const;
};

// Each answers the client when the words are wrong.
bool parse_interval(const Call& call, std::string_view low, std::string_view high, ScoreInterval& interval);
bool parse_interval(const Call& call, std::string_view low, std::string_view high, LexInterval& interval);

// The members inside.
Ranks ranks_in(const SortedSet& zset, const ScoreInterval& interval);
Ranks ranks_in(const SortedSet& zset, const LexInterval& interval);

}  // namespace weir::kv
