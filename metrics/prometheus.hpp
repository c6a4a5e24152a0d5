// Text of the Prometheus exposition format, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
// Begin a metric once, then add its samples. The caller chooses names, which are not checked; label values
// are escaped. Threading: one thread per text.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::metrics {

// The labels of one sample, in the order in which they were added.
class Labels {
 public:
  Labels() = default;
  Labels(std::string_view name, std::string_view value) { add(name, value); }
  Labels& add(std::string_view name, std::string_view value);
  // Adds labels that are already formatted: NAME="VALUE",NAME="VALUE"; nothing if empty.
  Labels& add_formatted(std::string_view labels);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class PrometheusText {
 public:
  enum class Type : std::uint8_t { counter, gauge, histogram };

  void metric(std::string_view name, Type type, std::string_view help);

  // A sample of the metric that was begun last.
  template <std::integral Number>
  void sample(Number value, const Labels& labels = {}) {
    line("", labels, std::to_string(value));
  }
  // With `digits` significant digits.
  void sample(double value, const Labels& labels = {}, int digits = 9);
  // For a histogram: how many observations were at most `bound`; then their sum and number, once
  // for each set of labels.
  void bucket(double bound, std::uint64_t count, Labels labels = {});
  void bucket_of_all(std::uint64_t count, Labels labels = {});
  void sum_and_count(double sum, std::uint64_t count, const Labels& labels = {});

  std::string take() { return std::move(text_); }

 private:
  void line(std::string_view suffix, const Labels& labels, std::string_view value);

  std::string text_;
  std::string name_;
};

}  // namespace weir::metrics
