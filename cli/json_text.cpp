#include "cli/json_text.hpp"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace weir {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void JsonText::part() {
  if (!std::exchange(after_key_, false) && !std::exchange(first_, false)) text_ += line_.empty() ? ", " : ",";
  text_ += std::exchange(line_, {});
}

JsonText& JsonText::element(std::string_view value) {
  part();
  text_ += value;
  return *this;
}

JsonText& JsonText::begin(char opening, char closing) {
  element(std::string_view(&opening, 1));
  closings_ += closing;
  first_ = true;
  return *this;
}

JsonText& JsonText::end() {
  text_ += std::exchange(line_, {});
  text_ += closings_.back();
  closings_.pop_back();
  first_ = false;
  return *this;
}

JsonText& JsonText::key(std::string_view name) {
  element(json_string(name) + ": ");
  after_key_ = true;
  return *this;
}

JsonText& JsonText::number(double value, int decimals) {
  if (!std::isfinite(value)) return element("null");
  char digits[350];  // the largest double has 309 digits before the point
  const int size = std::snprintf(digits, sizeof digits, "%.*f", decimals, value);
  return element(std::string_view(digits, static_cast<std::size_t>(size)));
}

JsonText& JsonText::line(std::size_t indentation) {
  line_ = "\n" + std::string(indentation, ' ');
  return *this;
}

}  // namespace weir
