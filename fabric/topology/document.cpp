#include "fabric/topology/document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <sstream>
#include <utility>

#include "fabric/topology/document_tree.hpp"
#include "spelling/did_you_mean.hpp"

namespace weir::fabric {
namespace {

using Array = std::vector<TomlValue>;
using Members = std::vector<TomlMember>;

std::string guess(std::string_view key, const std::vector<std::string>& known) {
  const std::vector<std::string_view> candidates(known.begin(), known.end());
  if (const std::string_view meant = nearest(key, candidates); !meant.empty())
    return fmt::format("did you mean '{}'?", meant);
  auto sorted = known;
  std::ranges::sort(sorted);
  return fmt::format("known here: {}", fmt::join(sorted, ", "));
}

std::string kind(const TomlValue& value) {
  constexpr std::array names = {"a date",   "true or false", "an integer", "a number",
                                "a string", "an array",      "a table"};
  return names[value.value.index()];
}

std::string_view base_unit(Unit unit) {
  switch (unit) {
    case Unit::bits_per_second:
      return " bit/s";
    case Unit::bytes:
      return " bytes";
    case Unit::meters:
      return " m";
    case Unit::nanoseconds:
    case Unit::timeout:
      return " ns";
    case Unit::fraction:
      return "";
  }
  return "";
}

}  // namespace

Table::Table(const TomlValue& value, Place place, std::string name, Complaints& complaints)
    : value_(&value), place_(std::move(place)), name_(std::move(name)), complaints_(&complaints) {}

Place Table::at(const TomlValue& value) const { return {place_.file, value.line, value.column}; }

const TomlValue* Table::find(std::string_view key) {
  if (std::ranges::find(asked_, key) == asked_.end()) asked_.emplace_back(key);
  for (const auto& member : std::get<Members>(value_->value))
    if (member.key == key) return &member.value;
  return nullptr;
}

bool Table::has(std::string_view key) { return find(key) != nullptr; }

Place Table::place(std::string_view key) const {
  for (const auto& member : std::get<Members>(value_->value))
    if (member.key == key) return at(member.value);
  return place_;
}

void Table::complain(std::string_view key, std::string what, std::string fix) {
  complaints_->add(place(key), std::move(what), std::move(fix));
}

void Table::missing(std::string_view key, std::string_view fix) {
  complaints_->add(place_, fmt::format("{} has no '{}'", name_, key), std::string(fix));
}

void Table::expected(std::string_view key, const TomlValue& value, std::string_view what) {
  complaints_->add(at(value), fmt::format("'{}' is {}", key, kind(value)), fmt::format("write {}", what));
}

std::optional<double> Table::within(std::string_view key, double value, Range range, std::string_view unit) {
  if (value >= range.least && value <= range.most) return value;
  complain(key, fmt::format("'{}' is {}{}", key, value, unit),
           fmt::format("give {} to {}{}", range.least, range.most, unit));
  return std::nullopt;
}

std::optional<std::string> Table::string(std::string_view key) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&value->value)) return *text;
  expected(key, *value, "a string in quotes");
  return std::nullopt;
}

std::optional<std::string> Table::word(std::string_view key,
                                       std::initializer_list<std::string_view> allowed) {
  auto text = string(key);
  if (!text || std::ranges::find(allowed, *text) != allowed.end()) return text;
  complain(key, fmt::format("'{}' is \"{}\"", key, *text),
           fmt::format("write one of: {}", fmt::join(allowed, ", ")));
  return std::nullopt;
}

std::optional<bool> Table::boolean(std::string_view key) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  if (const auto* flag = std::get_if<bool>(&value->value)) return *flag;
  expected(key, *value, "true or false, without quotes");
  return std::nullopt;
}

std::optional<std::int64_t> Table::integer(std::string_view key, Range range) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  const auto* number = std::get_if<std::int64_t>(&value->value);
  if (!number) {
    expected(key, *value, "an integer");
    return std::nullopt;
  }
  if (!within(key, static_cast<double>(*number), range, "")) return std::nullopt;
  return *number;
}

std::optional<double> Table::number(std::string_view key, Range range) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(&value->value))
    return within(key, static_cast<double>(*whole), range, "");
  if (const auto* number = std::get_if<double>(&value->value)) return within(key, *number, range, "");
  expected(key, *value, "a number");
  return std::nullopt;
}

std::optional<double> Table::quantity(std::string_view key, Unit unit, Range range) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  std::optional<double> number;
  if (const auto* text = std::get_if<std::string>(&value->value)) {
    number = read_quantity(*text, unit);
    if (!number) {
      complain(key, fmt::format("'{}' is \"{}\"", key, *text), fmt::format("write {}", example(unit)));
      return std::nullopt;
    }
  } else if (const auto* whole = std::get_if<std::int64_t>(&value->value)) {
    number = read_quantity(fmt::format("{}", *whole), unit);
  } else if (const auto* real = std::get_if<double>(&value->value)) {
    number = read_quantity(fmt::format("{}", *real), unit);
  }
  if (!number) {
    expected(key, *value, example(unit));
    return std::nullopt;
  }
  return within(key, *number, range, base_unit(unit));
}

std::vector<At<std::string>> Table::strings(std::string_view key) {
  std::vector<At<std::string>> out;
  const auto* value = find(key);
  if (!value) return out;
  const auto take = [&](const TomlValue& element) {
    if (const auto* text = std::get_if<std::string>(&element.value))
      out.push_back({*text, at(element)});
    else
      expected(key, element, "strings in quotes");
  };
  if (const auto* array = std::get_if<Array>(&value->value))
    for (const auto& element : *array) take(element);
  else
    take(*value);
  return out;
}

std::vector<At<std::int64_t>> Table::integers(std::string_view key, Range range) {
  std::vector<At<std::int64_t>> out;
  const auto* value = find(key);
  if (!value) return out;
  const auto take = [&](const TomlValue& element) {
    const auto* number = std::get_if<std::int64_t>(&element.value);
    if (!number) {
      expected(key, element, "integers");
    } else if (static_cast<double>(*number) < range.least || static_cast<double>(*number) > range.most) {
      complaints_->add(at(element), fmt::format("'{}' has {}", key, *number),
                       fmt::format("give {} to {}", range.least, range.most));
    } else {
      out.push_back({*number, at(element)});
    }
  };
  if (const auto* array = std::get_if<Array>(&value->value))
    for (const auto& element : *array) take(element);
  else
    take(*value);
  return out;
}

std::optional<Table> Table::table(std::string_view key) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  if (std::holds_alternative<Members>(value->value))
    return Table(*value, at(*value), fmt::format("[{}]", key), *complaints_);
  expected(key, *value, fmt::format("a table: [{}]", key));
  return std::nullopt;
}

std::vector<Table> Table::tables(std::string_view key) {
  std::vector<Table> out;
  const auto* value = find(key);
  if (!value) return out;
  const auto* array = std::get_if<Array>(&value->value);
  if (!array) {
    expected(key, *value, fmt::format("tables of an array: [[{}]]", key));
    return out;
  }
  for (const auto& element : *array) {
    if (std::holds_alternative<Members>(element.value))
      out.emplace_back(element, at(element), fmt::format("[[{}]]", key), *complaints_);
    else
      expected(key, element, fmt::format("a table: [[{}]]", key));
  }
  return out;
}

std::vector<At<std::string>> Table::other_keys() const {
  std::vector<At<std::string>> out;
  for (const auto& member : std::get<Members>(value_->value))
    if (std::ranges::find(asked_, member.key) == asked_.end())
      out.push_back({member.key, {place_.file, member.line, member.column}});
  return out;
}

void Table::finish() {
  for (auto& [key, place] : other_keys())
    complaints_->add(std::move(place), fmt::format("unknown key '{}' in {}", key, name_), guess(key, asked_));
}

Document::Document() = default;
Document::Document(Document&&) noexcept = default;
Document& Document::operator=(Document&&) noexcept = default;
Document::~Document() = default;

std::optional<Document> Document::parse(std::string_view text, std::string file, Complaints& complaints) {
  Document document;
  document.file_ = std::make_shared<const std::string>(std::move(file));
  document.tree_ = std::make_unique<TomlValue>();
  if (!parse_toml(text, {document.file_, 0, 0}, *document.tree_, complaints)) return std::nullopt;
  return document;
}

Table Document::root(Complaints& complaints) const { return {*tree_, {file_, 1, 1}, "the file", complaints}; }

std::optional<std::string> read_text(const std::filesystem::path& path) {
  std::error_code no_matter;  // ignored: opening the file reports it
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  if (std::filesystem::is_directory(path, no_matter)) {
    errno = EISDIR;
    return std::nullopt;
  }
  std::ostringstream text;
  text << file.rdbuf();  // an empty file writes nothing, which makes `text` fail
  if (file.bad() || text.bad()) return std::nullopt;
  return std::move(text).str();
}

}  // namespace weir::fabric
