#include <gtest/gtest.h>

#include "verbs/look/before_sleep.hpp"

namespace weir::verbs::look {
namespace {

TEST(SpinSetting, is_microseconds) {
  struct Case {
    const char* words;
    int us;  // -1: refused
  };
  for (const Case& each :
       {Case{"0", 0}, Case{"50", 50}, Case{"1000000", 1'000'000}, Case{"1000001", -1}, Case{"-1", -1},
        Case{"", -1}, Case{"5us", -1}, Case{" 5", -1}, Case{"99999999999", -1}}) {
    const auto read = read_setting(each.words);
    ASSERT_EQ(read.has_value(), each.us >= 0) << each.words;
    if (!read) continue;
    EXPECT_EQ(read->longest.count(), each.us);
    EXPECT_TRUE(read->always);
  }
}

TEST(SpinSetting, looks_only_where_a_core_is_idle_unless_it_is_set) {
  EXPECT_FALSE(Setting{}.always);
  EXPECT_GT(Setting{}.longest.count(), 0);
}

}  // namespace
}  // namespace weir::verbs::look
