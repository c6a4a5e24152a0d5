// What the compiler is asked about functions.
#include "rpc/method.hpp"

#include <gtest/gtest.h>

#include "rpc/registry.hpp"
#include "tests/rpc/services.hpp"

namespace weir::rpc {
namespace {

int hidden(int value) { return value; }

TEST(Method, names_are_qualified_with_dots) {
  EXPECT_EQ(method_name<shop::echo>, "shop.echo");
  EXPECT_EQ(method_name<&shop::Counter::add>, "shop.Counter.add");
  EXPECT_EQ(method_name<hidden>, "weir.rpc.hidden");
}

TEST(Method, numbers_are_fnv_1a) {
  EXPECT_EQ(method_id(""), 0xcbf29ce484222325u);
  EXPECT_EQ(method_id("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(method_id("foobar"), 0x85944171f73967e8u);
}

TEST(Method, arguments_travel_without_the_context) {
  static_assert(std::is_same_v<ArgumentsOf<shop::place_later>, std::tuple<shop::Order>>);
  static_assert(std::is_same_v<ResultOf<shop::place_later>, shop::Order>);
  static_assert(std::is_same_v<ResultOf<shop::divide_later>, std::int32_t>);
  static_assert(Method<shop::divide_later>::coroutine && !Method<shop::divide>::coroutine);
  static_assert(std::is_same_v<ArgumentsOf<shop::reflect>, std::tuple<>>);
}

TEST(Method, arguments_are_checked_against_the_function) {
  static_assert(PassableAs<const char(&)[3], std::string> && PassableAs<std::string_view, std::string>);
  static_assert(PassableAs<int, std::int64_t> && !PassableAs<std::string, int> &&
                !PassableAs<int, std::string>);
}

TEST(Registry, refuses_a_second_function_of_a_name) {
  Registry registry;
  Registered row;
  row.name = "a";
  registry.add(row);
  EXPECT_THROW(registry.add(row), std::logic_error);
}

}  // namespace
}  // namespace weir::rpc
