// How `weir rpc diff` reports the changes of a service's functions.
#include "cli/weir/rpc/rpc_diff.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::command {
namespace {

using testing::HasSubstr;

TEST(RpcDiff, tells_for_each_function_whether_old_callers_can_call_it) {
  const std::vector<rpc::MethodInfo> before = {
      {"a.same", "(i32) -> i32", "msgpack"},  {"b.grew", "(P{x: i32}) -> nil", "msgpack"},
      {"c.gone", "() -> nil", "msgpack"},     {"d.unit", "(i64[s]) -> nil", "msgpack"},
      {"e.wider", "(i32) -> nil", "msgpack"}, {"f.codec", "(A) -> B", "protobuf"}};
  const std::vector<rpc::MethodInfo> now = {
      {"a.same", "(i32) -> i32", "msgpack"},     {"b.grew", "(P{x: i32, y: i32}) -> nil", "msgpack"},
      {"d.unit", "(i64[ms]) -> nil", "msgpack"}, {"e.wider", "(i64) -> nil", "msgpack"},
      {"f.codec", "() -> nil", "msgpack"},       {"g.came", "() -> nil", "msgpack"}};
  const std::pair<std::string, std::pair<std::string, std::string>> rows[] = {
      {"b.grew", {"compatible", "(P{x: i32}) -> nil became (P{x: i32, y: i32}) -> nil"}},
      {"c.gone", {"breaking", "it is gone"}},
      {"d.unit", {"breaking", "argument 1: i64[s] at the caller, i64[ms] at the server"}},
      {"e.wider", {"servers first", "a new caller cannot call an old server: argument 1: i64"}},
      {"f.codec", {"breaking", "arguments in protobuf at the caller, in msgpack at the server"}},
      {"g.came", {"new", "() -> nil"}}};
  const auto all = differences(before, now);
  ASSERT_EQ(all.size(), std::size(rows));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].name, rows[i].first);
    EXPECT_EQ(all[i].verdict, rows[i].second.first) << all[i].name;
    EXPECT_THAT(all[i].what, HasSubstr(rows[i].second.second)) << all[i].name;
  }
}

TEST(RpcDiff, reads_what_list_printed) {
  const auto lines =
      listed_methods("shop.add(i32, i32) -> i32\nshop.place(shop.Order) -> shop.Receipt in protobuf\n");
  ASSERT_TRUE(lines) << lines.error();
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ(lines->at(0).name, "shop.add");
  EXPECT_EQ(lines->at(0).schema, "(i32, i32) -> i32");
  EXPECT_EQ(lines->at(1).schema, "(shop.Order) -> shop.Receipt");
  EXPECT_EQ(lines->at(1).codec, "protobuf");
  const auto json = listed_methods(R"([{"name": "shop.add", "schema": "(i32) -> i32", "codec": "msgpack"}])");
  ASSERT_TRUE(json) << json.error();
  EXPECT_EQ(json->at(0).schema, "(i32) -> i32");
}

TEST(RpcDiff, says_what_is_no_list) {
  const std::pair<const char*, const char*> rows[] = {{"", "it is empty"},
                                                      {"[1, 2]", "lacks name, schema or codec"},
                                                      {"[", "no JSON array"},
                                                      {"hello\n", "'hello' is no function with its types"}};
  for (const auto& [text, why] : rows) {
    const auto listed = listed_methods(text);
    ASSERT_FALSE(listed) << text;
    EXPECT_THAT(listed.error(), HasSubstr(why));
  }
}

}  // namespace
}  // namespace weir::command
