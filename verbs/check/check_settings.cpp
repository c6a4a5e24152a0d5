#include "verbs/check/check_settings.hpp"

#include <cstdlib>
#include <string_view>

namespace weir::check {
namespace {

Settings read() {
  const auto text = [](const char* name) {
    const char* const value = ::secure_getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  Settings all;
  const std::string value = text(check_variable);
  std::string_view words = value;
  all.on = !words.empty() && words != "off";
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(','));
    all.strict |= word == "strict";
    all.stop |= word == "stop";
    words.remove_prefix(word.size() < words.size() ? word.size() + 1 : words.size());
  }
  all.json = text(json_variable);
  all.suppressions = text(suppressions_variable);
  return all;
}

}  // namespace

const Settings& settings() {
  static const auto* const one = new Settings(read());
  return *one;
}

}  // namespace weir::check
