// What a plan would change in a switch's config_db.json.
#include "fabric/plan/config_difference.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::fabric {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* planned = R"({"BUFFER_PROFILE": {"lossy": {"size": "0", "dynamic_th": "3"}},
  "BUFFER_PORT_INGRESS_PROFILE_LIST": {"Ethernet0": {"profile_list": "one,two"}}})";

TEST(ConfigDifference, names_each_value_by_table_entry_and_field) {
  const auto lines = config_difference(planned, R"({"BUFFER_PROFILE": {"lossy": {"size": "9", "xon": "1"}},
      "BUFFER_PORT_INGRESS_PROFILE_LIST": {"Ethernet0": {"profile_list": ["one", "two"]}}})");
  EXPECT_THAT(*lines,
              ElementsAre("BUFFER_PROFILE|lossy|dynamic_th: (none) -> 3", "BUFFER_PROFILE|lossy|size: 9 -> 0",
                          "BUFFER_PROFILE|lossy|xon: 1 -> (none)"));
}

TEST(ConfigDifference, leaves_tables_alone_that_the_plan_does_not_write) {
  EXPECT_THAT(*config_difference("{}", R"({"PORT": {"Ethernet0": {"speed": "1"}}})"), IsEmpty());
  EXPECT_THAT(*config_difference(planned, planned), IsEmpty());
}

TEST(ConfigDifference, takes_whatever_a_file_holds) {
  for (const char* text : {"", "[]", "3", "{", "\"x\""})
    EXPECT_FALSE(config_difference(planned, text)) << text;
  EXPECT_THAT(
      *config_difference(planned,
                         R"({"BUFFER_PROFILE": 3, "BUFFER_PORT_INGRESS_PROFILE_LIST": {"Ethernet0": null}})"),
      testing::SizeIs(4));
}

}  // namespace
}  // namespace weir::fabric
