// What the compiler is asked about functions.
#include "rpc/method.hpp"

#include <gtest/gtest.h>

#include "rpc/client.hpp"
#include "rpc/registry.hpp"
#include "rpc/server.hpp"
#include "tests/rpc/services.hpp"

namespace weir::rpc {
namespace {

int hidden(int value) { return value; }

template <class T>
concept TimeoutInBraces = requires { T{.timeout = std::chrono::microseconds(1)}; };
template <class T>
concept ConnectTimeoutInBraces = requires { T{.connect_timeout = std::chrono::milliseconds(1)}; };
template <class T>
concept ThreadsInBraces = requires { T{.threads = 4}; };

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

// Those would be destroyed twice by GCC 12.
TEST(Method, options_of_what_is_awaited_have_a_name) {
  static_assert(!TimeoutInBraces<CallOptions> && !std::is_aggregate_v<CallOptions>);
  static_assert(!ConnectTimeoutInBraces<ConnectOptions> && !std::is_aggregate_v<ConnectOptions>);
  static_assert(TimeoutInBraces<ConnectionLimits> && ThreadsInBraces<ServerOptions>);
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
