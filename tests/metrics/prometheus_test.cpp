#include "metrics/prometheus.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace weir::metrics {
namespace {

using Type = PrometheusText::Type;

TEST(PrometheusText, says_what_a_metric_is_and_then_its_samples) {
  PrometheusText text;
  text.metric("things_total", Type::counter, "Things.");
  text.sample(3, {"kind", "a"});
  text.sample(std::uint64_t{1} << 63, Labels("kind", "b").add("more", "c"));
  text.metric("level", Type::gauge, "Level.");
  text.sample(0.25);
  EXPECT_EQ(text.take(),
            "# HELP things_total Things.\n# TYPE things_total counter\nthings_total{kind=\"a\"} 3\n"
            "things_total{kind=\"b\",more=\"c\"} 9223372036854775808\n"
            "# HELP level Level.\n# TYPE level gauge\nlevel 0.25\n");
}

TEST(PrometheusText, escapes_what_the_format_would_take_for_its_own) {
  EXPECT_EQ(Labels("name", "a\"b\\c\nd").text(), R"(name="a\"b\\c\nd")");
}

TEST(PrometheusText, puts_labels_that_are_formatted_behind_the_others) {
  EXPECT_EQ(Labels("a", "1").add_formatted("b=\"2\"").add_formatted("").text(), "a=\"1\",b=\"2\"");
}

TEST(PrometheusText, writes_a_histogram_with_its_sum_and_count) {
  PrometheusText text;
  text.metric("seconds", Type::histogram, "Seconds.");
  text.bucket(0.001, 2, {"of", "x"});
  text.bucket_of_all(5, {"of", "x"});
  text.sum_and_count(1.5, 5, {"of", "x"});
  EXPECT_EQ(text.take(),
            "# HELP seconds Seconds.\n# TYPE seconds histogram\nseconds_bucket{of=\"x\",le=\"0.001\"} 2\n"
            "seconds_bucket{of=\"x\",le=\"+Inf\"} 5\nseconds_sum{of=\"x\"} 1.5\nseconds_count{of=\"x\"} 5\n");
}

TEST(PrometheusText, names_what_is_no_number_as_the_format_does) {
  PrometheusText text;
  text.metric("x", Type::gauge, "X.");
  text.sample(std::numeric_limits<double>::quiet_NaN());
  text.sample(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(text.take(), "# HELP x X.\n# TYPE x gauge\nx NaN\nx -Inf\n");
}

}  // namespace
}  // namespace weir::metrics
