#include "rnic/weak/weaknesses.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

namespace weir::rnic::weak {
namespace {

constexpr std::string_view none = "none";

static_assert([] {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].weakness != static_cast<Weakness>(i)) return false;
  return true;
}());

std::optional<std::uint64_t> number_in(std::string_view word) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || word.empty()) return std::nullopt;
  return value;
}

std::string all_names() {
  std::string names;
  for (const WeaknessRow& row : table) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string_view take_word(std::string_view& words) {
  const std::string_view word = words.substr(0, words.find(','));
  words.remove_prefix(std::min(word.size() + 1, words.size()));
  return word;
}

}  // namespace

std::expected<Plan, std::string> read_plan(std::string_view words) {
  Plan plan;
  const std::string_view first = take_word(words);
  const auto seed = number_in(first);
  if (!seed) return std::unexpected("the seed is a number, not '" + std::string(first) + "'");
  plan.seed = *seed;
  bool only = false, changed = false;
  while (!words.empty()) {
    const std::string_view word = take_word(words);
    const bool adds = word.starts_with('+'), removes = word.starts_with('-');
    const std::string_view name = word.substr(adds || removes ? 1 : 0);
    const auto row = std::ranges::find(table, name, &WeaknessRow::name);
    const bool nothing = name == none && !adds && !removes;
    if (row == table.end() && !nothing)
      return std::unexpected("'" + std::string(word) + "' is no weakness; there are " + all_names());
    if (adds || removes ? only : changed)
      return std::unexpected("'" + std::string(word) +
                             "': either names alone, for these only, or names with + or -");
    if (!adds && !removes && !only) plan.weaknesses = 0;
    (adds || removes ? changed : only) = true;
    if (nothing) continue;
    if (removes)
      plan.weaknesses &= ~bit(row->weakness);
    else
      plan.weaknesses |= bit(row->weakness);
  }
  return plan;
}

std::string text_of(const Plan& plan) {
  const auto listed = [&](std::string_view before, std::uint32_t bits) {
    std::string text;
    for (const WeaknessRow& row : table)
      if (bits & bit(row.weakness)) text += "," + std::string(before) + std::string(row.name);
    return text;
  };
  const std::string seed = std::to_string(plan.seed);
  if (plan.weaknesses == 0) return seed + "," + std::string(none);
  const std::string changes =
      listed("+", plan.weaknesses & ~level_1()) + listed("-", level_1() & ~plan.weaknesses);
  const std::string these = listed("", plan.weaknesses);
  const auto words = [](const std::string& text) { return std::ranges::count(text, ','); };
  return seed + (words(changes) <= words(these) ? changes : these);
}

}  // namespace weir::rnic::weak
