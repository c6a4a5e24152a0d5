#include "cli/weir/stat/rate_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "cli/weir/stat/stat_text.hpp"

namespace weir::command {

void RateHistory::add(double per_second) {
  rates_.push_back(per_second);
  if (rates_.size() > most) rates_.pop_front();
}

std::string RateHistory::line(std::size_t columns) const {
  if (rates_.empty()) return {};
  constexpr std::string_view title = "operations/s ";
  constexpr std::size_t longest_figures = 30;
  if (columns < title.size() + longest_figures + 1) return {};
  const std::size_t shown = std::min(rates_.size(), columns - title.size() - longest_figures);
  const auto first = rates_.end() - static_cast<std::ptrdiff_t>(shown);
  const double highest = *std::max_element(first, rates_.end());
  static constexpr std::array<std::string_view, 9> blocks{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<std::string_view, 9> ascii{" ", "_", ".", ":", "-", "=", "+", "*", "#"};
  const auto& bars = bars_ == Bars::blocks ? blocks : ascii;
  std::string text(title);
  for (auto rate = first; rate != rates_.end(); ++rate) {
    // Whatever is not 0 is seen.
    const double height = highest > 0 ? std::ceil(*rate / highest * 8) : 0;
    text += bars[static_cast<std::size_t>(height)];
  }
  return text + fmt::format("  now {}, highest {}", short_number(rates_.back()), short_number(highest));
}

bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale(value);
    std::ranges::transform(locale, locale.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return locale.find("UTF-8") != std::string::npos || locale.find("UTF8") != std::string::npos;
  }
  return false;
}

}  // namespace weir::command
