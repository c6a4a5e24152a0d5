#include "spelling/did_you_mean.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace weir {
namespace {

constexpr std::size_t longest_word = 64;  // what is longer was never meant as one of ours

// Letters to insert, drop, replace, or swap with their neighbour (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

bool of_an_option(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; }

std::vector<std::string_view> options_in(std::string_view help) {
  std::vector<std::string_view> found;
  for (std::size_t at = help.find("--"); at != std::string_view::npos; at = help.find("--", at)) {
    std::size_t end = at;
    while (end < help.size() && of_an_option(help[end])) ++end;
    if (end - at > 3) found.push_back(help.substr(at, end - at));
    at = std::max(end, at + 2);
  }
  return found;
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  if (word.size() > longest_word) return {};
  std::string_view found;
  std::size_t least = 1 + std::max<std::size_t>(1, word.size() / 3);  // further away is another word
  for (const std::string_view candidate : candidates)
    if (const std::size_t far = distance(word, candidate); far < least) {
      least = far;
      found = candidate;
    }
  return found != word ? found : std::string_view();  // itself: something else is wrong with it
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view meant = nearest(word, candidates);
  return meant.empty() ? "" : "; did you mean '" + std::string(meant) + "'?";
}

std::string did_you_mean_option(std::string_view word, std::string_view help) {
  word = word.substr(0, word.find('='));
  if (!word.starts_with("--")) return {};
  return did_you_mean(word, options_in(help));
}

std::string option_complaint(std::string_view word, std::string_view help) {
  const std::string name(word.substr(0, word.find('=')));
  const auto known = options_in(help);
  if (std::ranges::find(known, name) == known.end())
    return "unknown option " + name + did_you_mean_option(word, help);
  return name + (name.size() == word.size() ? " needs a value" : " takes no value");
}

}  // namespace weir
