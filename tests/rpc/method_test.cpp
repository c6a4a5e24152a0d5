// Facts derived from functions at compile time.
#include "rpc/codec/method.hpp"

#include <gtest/gtest.h>

#include "rpc/client.hpp"
#include "rpc/server.hpp"
#include "rpc/server/registry.hpp"
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

template <class From, class To>
constexpr bool loses(Loss what) {
  return std::is_convertible_v<From, To> && loss_of<From, To> == what &&
         PassableAs<From, To> == (what == Loss::nothing || what == Loss::range);
}
struct Truth {
  operator bool() const;
};
struct Number {
  operator int() const;
};
enum Plain : std::uint16_t { plain };

TEST(Method, what_would_lose_its_sense_or_fraction_is_refused) {
  static_assert(loses<bool, bool>(Loss::nothing) && loses<Truth, bool>(Loss::nothing));
  static_assert(loses<const char(&)[4], bool>(Loss::sense) && loses<int, bool>(Loss::sense));
  static_assert(loses<double, bool>(Loss::sense) && loses<Number, bool>(Loss::sense));
  static_assert(loses<const void*, std::optional<bool>>(Loss::sense));
  static_assert(loses<double, std::int64_t>(Loss::fraction) && loses<float, char>(Loss::fraction));
  static_assert(loses<double, std::optional<int>>(Loss::fraction));
  static_assert(loses<std::optional<double>, std::optional<int>>(Loss::fraction));
  static_assert(loses<float, double>(Loss::nothing) && loses<int, double>(Loss::nothing));
}

TEST(Method, integers_are_looked_at_where_they_may_not_fit_only) {
  static_assert(loses<bool, std::int8_t>(Loss::nothing) && loses<bool, std::uint8_t>(Loss::nothing));
  static_assert(loses<std::int8_t, std::int64_t>(Loss::nothing));
  static_assert(loses<std::uint32_t, std::int64_t>(Loss::nothing));
  static_assert(loses<Plain, std::uint16_t>(Loss::nothing) && loses<Plain, std::uint8_t>(Loss::range));
  static_assert(loses<std::uint32_t, std::int32_t>(Loss::range));
  static_assert(loses<std::int8_t, std::uint64_t>(Loss::range));
  static_assert(loses<int, std::optional<std::uint8_t>>(Loss::range));
  static_assert(loses<std::nullopt_t, std::optional<std::uint8_t>>(Loss::nothing));
}

template <class To, class From>
std::string wrong(From value) {
  std::optional<WrongInteger> found;
  see_range<To>(value, 1, found);
  return found ? wrong_integer("f", *found).what : "";
}

TEST(Method, integers_that_do_not_fit_are_named_with_what_would) {
  EXPECT_EQ(wrong<std::uint8_t>(300),
            "argument 1 of f is 300, which is no uint8_t: that is 0 to 255; nothing was sent");
  EXPECT_EQ(wrong<std::int8_t>(-129),
            "argument 1 of f is -129, which is no int8_t: that is -128 to 127; nothing was sent");
  EXPECT_EQ(
      wrong<std::uint64_t>(-1),
      "argument 1 of f is -1, which is no uint64_t: that is 0 to 18446744073709551615; nothing was sent");
  EXPECT_EQ(wrong<std::int64_t>(std::uint64_t{1} << 63),
            "argument 1 of f is 9223372036854775808, which is no int64_t: that is -9223372036854775808 to "
            "9223372036854775807; nothing was sent");
  EXPECT_NE(wrong<std::optional<std::int16_t>>(1 << 16), "");
  EXPECT_NE(wrong<std::optional<std::int16_t>>(std::optional<int>(1 << 16)), "");
  for (const int fits : {0, 1, 127, 128, 255}) EXPECT_EQ(wrong<std::uint8_t>(fits), "") << fits;
  for (const int fits : {-128, -1, 0, 127}) EXPECT_EQ(wrong<std::int8_t>(fits), "") << fits;
  EXPECT_EQ(wrong<std::optional<std::int16_t>>(std::optional<int>()), "");
  EXPECT_EQ(wrong<std::int64_t>(std::uint64_t{1} << 62), "");
}

// GCC 12 would destroy these twice.
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
