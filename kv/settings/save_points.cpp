#include "kv/settings/save_points.hpp"

#include "kv/resp/words.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

std::expected<std::vector<SavePoint>, std::string> read_save_points(std::span<const std::string> words) {
  const auto invalid = [] { return std::unexpected(std::string("Invalid save parameters")); };
  std::vector<std::string> numbers;
  for (const std::string& word : words) {
    const auto split = split_words(word);
    if (!split) return invalid();
    numbers.insert(numbers.end(), split->begin(), split->end());
  }
  if (numbers.size() % 2 != 0) return invalid();
  std::vector<SavePoint> points;
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const auto seconds = parse_int(numbers[i]);
    const auto changes = parse_int(numbers[i + 1]);
    if (!seconds || !changes || *seconds < 1 || *changes < 0) return invalid();
    points.push_back({*seconds, *changes});
  }
  return points;
}

std::string save_points_text(std::span<const SavePoint> points) {
  std::string text;
  for (const SavePoint& point : points) {
    if (!text.empty()) text += ' ';
    text += std::to_string(point.seconds) + ' ' + std::to_string(point.changes);
  }
  return text;
}

}  // namespace weir::kv
