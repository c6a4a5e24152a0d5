// One row of the table of settings: the name, where the value is stored, its valid values, and whether it may
// change while the server runs. Only data; settings.hpp has the table and its functions.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace weir::kv {

struct Settings;

// bytes_or_percent: a percentage is stored as a negative number.
enum class Unit : std::uint8_t { number, bytes, bytes_or_percent, octal };

struct IntegerSetting {
  std::int64_t Settings::* member;
  std::int64_t least, most;
  Unit unit = Unit::number;
};
struct BoolSetting {
  bool Settings::* member;
};
struct TextSetting {
  std::string Settings::* member;
};
struct ChoiceSetting {
  int Settings::* member;
  std::span<const std::string_view> choices;
};
// Several words, stored as one line.
struct WordsSetting {
  std::string Settings::* member;
  // Makes that line, or returns what is wrong; null: the words are joined.
  std::expected<std::string, std::string> (*line)(std::span<const std::string> words) = nullptr;
};
struct OutputLimitSetting {};
// Several lines in one file add up and replace the earlier value.
struct SavePointsSetting {};
// A setting without effect; its value is in Settings::idle.
struct IdleSetting {
  enum class Form : std::uint8_t { yes_no, number, bytes, text };

  std::string_view name;
  Form form;
  std::string_view initial;
  std::string_view why;  // it has none
};
// A missing feature: values that do not ask for it are accepted, others are refused with the reason. The
// first of those is what it is.
struct AbsentSetting {
  std::string_view why;
  std::span<const std::string_view> harmless;
};
using SettingKind = std::variant<IntegerSetting, BoolSetting, TextSetting, ChoiceSetting, WordsSetting,
                                 OutputLimitSetting, SavePointsSetting, AbsentSetting, IdleSetting>;

// at_start_for_safety: could change, but a client that sets it could harm the host (Redis: "protected").
enum class Change : std::uint8_t { any_time, at_start, at_start_for_safety };

struct SettingSpec {
  std::string_view name;
  SettingKind kind;
  Change change = Change::any_time;
  std::string_view other_name = {};  // a second name for the same setting
  std::string_view help = {};        // one line for --help; empty: not listed there
  bool without_effect = false;       // accepted so that other servers' files load; docs/man lists these
};

}  // namespace weir::kv
