#include "faults/written_values.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::faults {

std::expected<std::uint64_t, std::string> number(std::string_view word, std::uint64_t max_value) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  if (word.empty() || read.ec != std::errc{} || read.ptr != word.data() + word.size())
    return std::unexpected("wants a number, not '" + std::string(word) + "'");
  if (value > max_value) return std::unexpected("is at most " + std::to_string(max_value));
  return value;
}

std::expected<Range, std::string> range(std::string_view word, std::uint64_t min_value,
                                        std::uint64_t max_value) {
  const std::size_t dots = word.find("..");
  const auto first = number(word.substr(0, dots), max_value);
  if (!first) return std::unexpected(first.error() + (dots == word.npos ? " or a range like 5..9" : ""));
  const auto last = dots == word.npos ? first : number(word.substr(dots + 2), max_value);
  if (!last) return std::unexpected(last.error());
  if (*first < min_value) return std::unexpected("counts from " + std::to_string(min_value));
  if (*last < *first) return std::unexpected("is a range that ends before it begins");
  return Range{*first, *last};
}

std::expected<std::uint64_t, std::string> duration(std::string_view word) {
  double value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  const std::string_view unit = word.substr(static_cast<std::size_t>(read.ptr - word.data()));
  constexpr std::pair<std::string_view, double> units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
  const auto found = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
  constexpr double longest_ns = 3600e9;
  if (read.ec != std::errc{} || found == std::end(units) || !(value >= 0))
    return std::unexpected("wants a time like 80us, 5ms or 1s, not '" + std::string(word) + "'");
  if (value * found->second > longest_ns) return std::unexpected("is at most 3600s");
  return static_cast<std::uint64_t>(value * found->second);
}

std::expected<double, std::string> share(std::string_view word) {
  double value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  const std::string_view behind = word.substr(static_cast<std::size_t>(read.ptr - word.data()));
  if (behind == "%") value /= 100;
  if (read.ec != std::errc{} || (behind != "%" && !behind.empty()) || !(value > 0 && value <= 1))
    return std::unexpected("wants a share above 0 and up to 1, like 0.01 or 1%, not '" + std::string(word) +
                           "'");
  return value;
}

}  // namespace weir::faults
