// A SCAN's cursor as Redis reads it, by strtoul: a minus sign wraps around, and an empty word is 0.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::kv {

inline std::optional<std::uint64_t> read_cursor(std::string_view word) {
  if (word.empty()) return 0;
  const bool negative = word.starts_with('-');
  if (negative || word.starts_with('+')) word.remove_prefix(1);
  std::uint64_t cursor = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), cursor);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return negative ? std::uint64_t{0} - cursor : cursor;
}

}  // namespace weir::kv
