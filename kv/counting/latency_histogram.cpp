#include "kv/counting/latency_histogram.hpp"

#include <cstdio>

#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

// At most six digits after the point, and no trailing zeros.
std::string trimmed(double value) {
  std::array<char, 32> text;
  const int size = std::snprintf(text.data(), text.size(), "%f", value);
  std::string out(text.data(), static_cast<std::size_t>(size));
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

}  // namespace

std::expected<std::string, std::string> percentiles_line(std::span<const std::string> words) {
  std::string line;
  // A file gives words; CONFIG SET gives one text, separated by single spaces.
  const auto take = [&line](std::string_view word) -> std::expected<void, std::string> {
    const auto percent = parse_double(word);
    if (!percent) return std::unexpected("Invalid latency-tracking-info-percentiles parameters");
    if (*percent < 0 || *percent > 100) {
      return std::unexpected("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]");
    }
    line.append(line.empty() ? "" : " ").append(trimmed(*percent));
    return {};
  };
  if (words.size() == 1 && words.front().empty()) return line;
  for (std::string_view rest : words) {
    for (std::size_t end; (end = rest.find(' ')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
      if (auto taken = take(rest.substr(0, end)); !taken) return std::unexpected(taken.error());
    }
    if (auto taken = take(rest); !taken) return std::unexpected(taken.error());
  }
  return line;
}

}  // namespace weir::kv
