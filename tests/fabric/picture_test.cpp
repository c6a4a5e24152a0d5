// Drawings: what is clipped, what is escaped, and where things are placed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "fabric/picture/heat.hpp"
#include "fabric/picture/page.hpp"
#include "fabric/picture/plot.hpp"

namespace weir::fabric {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Le;
using testing::Not;
using testing::SizeIs;

// The x of each point of the first element with this name and class.
std::vector<double> xs_of(const std::string& svg, const std::string& element) {
  std::smatch found;
  if (!std::regex_search(svg, found, std::regex("<" + element + " class=\"c0\" points=\"([^\"]*)\"")))
    return {};
  std::vector<double> xs;
  const std::string points = found[1];
  const std::regex pair("([0-9.]+),[0-9.]+");
  for (auto it = std::sregex_iterator(points.begin(), points.end(), pair); it != std::sregex_iterator(); ++it)
    xs.push_back(std::stod((*it)[1]));
  return xs;
}

constexpr double right_border = 1046;

TEST(Plot, points_beyond_the_axis_are_cut_off_at_its_end) {
  Plot plot{.title = "t", .lines = {{"a", {{0, 1}, {5, 2}, {50, 3}, {60, 4}}}}, .x_from = 0, .x_to = 10};
  const auto xs = xs_of(svg(plot), "polyline");
  ASSERT_THAT(xs, SizeIs(3));  // two inside and the point where the line leaves
  EXPECT_THAT(xs, Each(Le(right_border)));
  EXPECT_DOUBLE_EQ(xs.back(), right_border);
}

TEST(Plot, value_where_a_line_leaves_is_on_the_line) {
  // The highest value inside is 2 (half-way from 1 to 3), so the top of the axis is 2, not 3.
  Plot cut{.lines = {{"a", {{0, 1}, {20, 3}}}}, .x_from = 0, .x_to = 10};
  Plot whole{.lines = {{"a", {{0, 1}, {10, 2}}}}, .x_from = 0, .x_to = 10};
  EXPECT_EQ(svg(cut), svg(whole));
}

TEST(Plot, steps_keep_their_value_until_they_leave) {
  Plot cut{.lines = {{"a", {{0, 1}, {20, 3}}, true}}, .x_from = 0, .x_to = 10};
  Plot whole{.lines = {{"a", {{0, 1}, {10, 1}}, true}}, .x_from = 0, .x_to = 10};
  EXPECT_EQ(svg(cut), svg(whole));
}

TEST(Plot, bands_end_with_the_axis) {
  Plot plot{.lines = {{"a", {{0, 1}, {10, 1}}}}, .bands = {{8, 100}, {20, 30}}, .x_from = 0, .x_to = 10};
  const auto text = svg(plot);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      text, found, std::regex("class=\"band\" x=\"([0-9.]+)\" y=\"[0-9.]+\" width=\"([0-9.]+)\"")));
  EXPECT_NEAR(std::stod(found[1]) + std::stod(found[2]), right_border, 0.1);
  EXPECT_FALSE(std::regex_search(found.suffix().str(), std::regex("class=\"band\"")));
}

// The words below the axis, without those of the y axis, which end to its left.
std::vector<std::string> words_below(const std::string& svg) {
  std::vector<std::string> words;
  const std::regex text("<text class=\"quiet\" x=\"([0-9.]+)\" y=\"([0-9.]+)\"[^>]*>([^<]*)</text>");
  constexpr double axis_y = 240;
  for (auto it = std::sregex_iterator(svg.begin(), svg.end(), text); it != std::sregex_iterator(); ++it)
    if (std::stod((*it)[2]) > axis_y + 10) words.push_back((*it)[3]);
  return words;
}

TEST(Plot, part_of_a_decade_on_a_log_axis_has_numbers) {
  struct Row {
    double from, to;
    std::vector<std::string> says;
  };
  for (const auto& row : {Row{5100, 7600, {"5500", "6000", "6500", "7000", "7500", "us (logarithmic)"}},
                          Row{1, 10, {"1", "2", "5", "10", "us (logarithmic)"}},
                          Row{1, 1000, {"1", "10", "100", "1000", "us (logarithmic)"}}}) {
    const Plot plot{.x_label = "us", .log_x = true, .lines = {{"a", {{row.from, 0}, {row.to, 1}}}}};
    EXPECT_EQ(words_below(svg(plot)), row.says) << row.from << " to " << row.to;
  }
}

TEST(Plot, names_of_near_limits_stand_apart) {
  Plot plot{.lines = {{"a", {{0, 0}, {10, 1000}}}}, .limits = {{"Kmax", 500}, {"XOFF", 505}, {"Kmin", 100}}};
  const auto text = svg(plot);
  std::vector<double> ends;
  const std::regex name("<text class=\"quiet small over\" x=\"([0-9.]+)\"");
  for (auto it = std::sregex_iterator(text.begin(), text.end(), name); it != std::sregex_iterator(); ++it)
    ends.push_back(std::stod((*it)[1]));
  ASSERT_THAT(ends, SizeIs(3));
  EXPECT_LT(ends[1], ends[0] - 25);  // the width of a name
  EXPECT_EQ(ends[2], ends[0]);
}

TEST(Plot, names_stand_in_place_of_numbers_where_they_have_room) {
  Plot plot{.x_label = "kmin",
            .lines = {{"a", {{0, 1}, {1, 2}, {2, 3}}}},
            .x_names = {"50KB", "1MB", "none"},
            .x_to = 2};
  EXPECT_THAT(words_below(svg(plot)), testing::ElementsAre("50KB", "1MB", "none", "kmin (in equal steps)"));
  plot.x_names.assign(101, "0.0078125");
  plot.x_to = 100;
  const auto crowded = words_below(svg(plot));
  EXPECT_THAT(crowded, SizeIs(testing::AllOf(testing::Ge(10u), Le(15u))));
}

TEST(Plot, names_are_escaped) {
  Plot plot{.title = "<b>", .lines = {{"a<", {{0, 1}}}, {"\"&", {{0, 2}}}}};
  const auto text = svg(plot);
  EXPECT_THAT(text, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(text, HasSubstr("a&lt;"));
  EXPECT_THAT(text, HasSubstr("&quot;&amp;"));
  EXPECT_THAT(text, Not(HasSubstr("<b>")));
}

TEST(Heat, neighbouring_moments_that_look_alike_are_one_box) {
  HeatMap map{.moments = {0, 1, 2, 3}, .x_to = 4, .rows = {{"r", {0, 8, 8, 1}, {false, false, true, true}}}};
  const auto text = svg(map);
  const auto count = [&](const char* css) {
    const std::regex box(std::string("<rect class=\"") + css + "\" x=");
    return std::distance(std::sregex_iterator(text.begin(), text.end(), box), std::sregex_iterator());
  };
  EXPECT_EQ(count("h8"), 2);  // in the row and in the key
  EXPECT_EQ(count("h1"), 2);
  EXPECT_EQ(count("h2"), 1);  // in the key
  EXPECT_EQ(count("held"), 2);
}

TEST(Number, is_short_or_grouped) {
  const std::pair<double, const char*> rows[] = {{0, "0"},           {999, "999"}, {12345, "12.3k"},
                                                 {1234567, "1.23M"}, {2e9, "2G"},  {0.00012, "0.00012"}};
  for (const auto& [value, text] : rows) EXPECT_EQ(short_number(value), text);
  const std::pair<std::uint64_t, const char*> whole[] = {
      {0, "0"}, {999, "999"}, {1000, "1,000"}, {1234567, "1,234,567"}};
  for (const auto& [value, text] : whole) EXPECT_EQ(grouped(value), text);
}

}  // namespace
}  // namespace weir::fabric
