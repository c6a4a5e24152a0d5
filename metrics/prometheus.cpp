#include "metrics/prometheus.hpp"

#include <array>
#include <cmath>
#include <cstdio>

namespace weir::metrics {
namespace {

std::string number(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*g", digits, value);
  return text.data();
}

constexpr int bound_digits = 9;

}  // namespace

Labels& Labels::add(std::string_view name, std::string_view value) {
  if (!text_.empty()) text_ += ',';
  text_.append(name).append("=\"");
  for (const char c : value) {
    if (c == '\\' || c == '"') text_ += '\\';
    if (c == '\n')
      text_ += "\\n";
    else
      text_ += c;
  }
  text_ += '"';
  return *this;
}

Labels& Labels::add_formatted(std::string_view labels) {
  if (!text_.empty() && !labels.empty()) text_ += ',';
  text_ += labels;
  return *this;
}

void PrometheusText::metric(std::string_view name, Type type, std::string_view help) {
  constexpr std::array<std::string_view, 3> types{"counter", "gauge", "histogram"};
  name_ = name;
  text_.append("# HELP ").append(name_).append(" ").append(help);
  text_.append("\n# TYPE ").append(name_).append(" ").append(types[static_cast<std::size_t>(type)]) += '\n';
}

void PrometheusText::sample(double value, const Labels& labels, int digits) {
  line("", labels, number(value, digits));
}

void PrometheusText::bucket(double bound, std::uint64_t count, Labels labels) {
  line("_bucket", labels.add("le", number(bound, bound_digits)), std::to_string(count));
}

void PrometheusText::bucket_of_all(std::uint64_t count, Labels labels) {
  line("_bucket", labels.add("le", "+Inf"), std::to_string(count));
}

void PrometheusText::sum_and_count(double sum, std::uint64_t count, const Labels& labels) {
  line("_sum", labels, number(sum, bound_digits));
  line("_count", labels, std::to_string(count));
}

void PrometheusText::line(std::string_view suffix, const Labels& labels, std::string_view value) {
  text_.append(name_).append(suffix);
  if (!labels.text().empty()) text_.append("{").append(labels.text()).append("}");
  text_.append(" ").append(value) += '\n';
}

}  // namespace weir::metrics
