// What the tables of kinds and conditions read their words with. Pure.
#pragma once

#include <algorithm>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "spelling/did_you_mean.hpp"

namespace weir::faults {

using Read = std::expected<void, std::string>;  // the error is a sentence without the line

// Stores a value that was read, or passes on why it was not.
template <typename Value, typename Into>
Read store(std::expected<Value, std::string> read, Into& into) {
  if (!read) return std::unexpected(read.error());
  into = *read;
  return {};
}

template <typename Items>
std::vector<std::string_view> names_of(const Items& items) {
  std::vector<std::string_view> names;
  for (const auto& item : items) names.push_back(item.name);
  return names;
}

// A name out of a table of {name, value}.
template <typename Names>
auto named(std::string_view value, const Names& table, std::string_view what)
    -> std::expected<decltype(table.begin()), std::string> {
  const auto names = names_of(table);
  const auto found = std::ranges::find(names, value);
  if (found != names.end()) return table.begin() + (found - names.begin());
  return std::unexpected("wants " + std::string(what) + ", not '" + std::string(value) + "'" +
                         did_you_mean(value, names));
}

template <typename Shown, typename Rules>
std::vector<Shown> shown_of(const Rules& rules) {
  std::vector<Shown> shown;
  for (const auto& rule : rules) shown.push_back(rule.shown);
  return shown;
}

}  // namespace weir::faults
