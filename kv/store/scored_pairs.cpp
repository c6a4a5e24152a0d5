#include "kv/store/scored_pairs.hpp"

#include <array>
#include <charconv>
#include <cstring>

namespace weir::kv {

namespace {

constexpr std::size_t double_bytes = sizeof(double);
using ScoreText = std::array<char, 32>;

// In `room` if it is no integer.
listpack::Element element_of(double score, ScoreText& room) {
  constexpr double most = 9223372036854775808.0;  // 2^63
  if (score >= -most && score < most) {
    const auto integer = static_cast<std::int64_t>(score);
    if (static_cast<double>(integer) == score) return listpack::Element(integer);
  }
  const auto [end, error] = std::to_chars(room.data(), room.data() + room.size(), score);
  const auto size = static_cast<std::size_t>(end - room.data());
  if (size < double_bytes) return listpack::Element::bytes({room.data(), size});
  std::memcpy(room.data(), &score, double_bytes);
  return listpack::Element::bytes({room.data(), double_bytes});
}

bool is_before(PackedPairs::Place pair, double score, std::string_view member) {
  const double own = ScoredPairs::score(pair);
  if (own != score) return own < score;
  IntText room;
  return listpack::text(pair, room) < member;
}

}  // namespace

ScoredPairs ScoredPairs::copy() const {
  ScoredPairs other;
  other.pairs_ = pairs_.copy();
  return other;
}

double ScoredPairs::score(Place pair) {
  const Place element = PackedPairs::value_of(pair);
  if (listpack::is_integer(element)) return static_cast<double>(listpack::integer(element));
  IntText unused;
  const std::string_view bytes = listpack::text(element, unused);
  double score = 0;
  if (bytes.size() == double_bytes) {
    std::memcpy(&score, bytes.data(), double_bytes);
  } else {
    std::from_chars(bytes.data(), bytes.data() + bytes.size(), score);
  }
  return score;
}

void ScoredPairs::insert(std::string_view member, double score) {
  score += 0.0;  // no negative zero
  Place place = begin();
  while (place != end() && is_before(place, score, member)) place = next(place);
  ScoreText room;
  pairs_.insert(place, listpack::Element(member), element_of(score, room));
}

void ScoredPairs::rescore(Place pair, double score) {
  score += 0.0;
  ScoreText room;
  pair = pairs_.set_value(pair, element_of(score, room));
  IntText digits;
  const std::string_view member = listpack::text(pair, digits);
  Place place = begin();
  while (place != end() && (place == pair || is_before(place, score, member))) place = next(place);
  pairs_.move(pair, place);
}

void ScoredPairs::erase(Place first, std::size_t members) {
  Place last = first;
  for (std::size_t i = 0; i < members; ++i) last = next(last);
  pairs_.erase(first, last, members);
}

}  // namespace weir::kv
