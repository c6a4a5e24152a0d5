// Text of the Prometheus exposition format, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
// A metric is begun once; its samples follow. Names are the caller's and not checked; values of labels are
// escaped. Threading: a text belongs to one thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::metrics {

// The labels of one sample, in the order in which they are added.
class Labels {
 public:
  Labels() = default;
  Labels(std::string_view name, std::string_view value) { add(name, value); }
  Labels& add(std::string_view name, std::string_view value);
  // Those that are formatted already: NAME="VALUE",NAME="VALUE"; none if it is empty.
  Labels& add_formatted(std::string_view labels);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

class PrometheusText {
 public:
  enum class Type : std::uint8_t { counter, gauge, histogram };

  void metric(std::string_view name, Type type, std::string_view help);

  // Of the metric that was begun last.
  template <std::integral Number>
  void sample(Number value, const Labels& labels = {}) {
    line("", labels, std::to_string(value));
  }
  // With so many significant digits.
  void sample(double value, const Labels& labels = {}, int digits = 9);
  // Of a histogram: how many observations did not exceed `bound`; then their sum and their number, once for
  // each set of labels.
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
