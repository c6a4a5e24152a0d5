// Which callers can call which servers, given the types that both report.
#include "rpc/codec/schema_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "rpc/codec/schema.hpp"

namespace weir::rpc {
namespace {

using testing::HasSubstr;

struct Row {
  std::string callers, served;
  std::string why;  // empty: callable
};

void expect(const std::vector<Row>& rows) {
  for (const auto& [callers, served, why] : rows) {
    const auto said = why_not_callable(callers, served);
    EXPECT_EQ(said.has_value(), !why.empty())
        << callers << "   at   " << served << "   " << said.value_or("");
    EXPECT_THAT(said.value_or(""), HasSubstr(why)) << callers << "   at   " << served;
  }
}

TEST(SchemaCheck, growth_is_taken) {
  expect({{"(i32, i32) -> i32", "(i32, i32) -> i32", ""},
          {"(Item{name: str}) -> nil", "(Item{name: str, count: u32}) -> nil", ""},
          {"(Item{name: str, count: u32}) -> nil", "(Thing{name: str}) -> nil", ""},
          {"() -> Item{name: str, count: u32}", "() -> Item{name: str}", ""},
          {"(u32) -> u32", "(i64) -> u16", ""},
          {"(f32) -> nil", "(f64) -> nil", ""},
          {"(i32) -> nil", "(?i32) -> nil", ""},
          {"(<bool | str>) -> nil", "(<bool | str | f64>) -> nil", ""},
          {"(str) -> str", "(str, optional i64[ms]) -> str", ""},
          {"(str, optional i64[ms]) -> str", "(str) -> str", ""},
          {"(Node{value: i32, children: [Node]}) -> nil",
           "(Tree{value: i64, children: [Tree], depth: u8}) -> nil", ""},
          {"(any) -> nil", "({str: [i32]}) -> nil", ""},
          {"(u8<open = 0>) -> u8<open = 0, shut = 1>", "(u8<open = 0, shut = 1>) -> u8<open = 0>", ""},
          {"(u8<open = 0, shut = 1>) -> nil", "(u16) -> nil", ""},
          {"(u8) -> nil", "(u8<low = -1>) -> nil", ""},
          {"(u32, stream str) -> stream i32, u8", "(u64, stream str) -> stream i16, u8", ""},
          {"() -> nil", "() -> str", ""}});
}

TEST(SchemaCheck, everything_else_is_refused_with_what_differs) {
  expect({{"(str, i64[s]) -> nil", "(str, i64[ms]) -> nil",
           "argument 2: i64[s] at the caller, i64[ms] at the server"},
          {"(i64) -> nil", "(i64[s]) -> nil", "argument 1: i64 at the caller, i64[s] at the server"},
          {"() -> i64[s]", "() -> i64[ms]", "result: i64[ms] at the server, i64[s] at the caller"},
          {"(Box{width: f64, height: f64}) -> nil", "(Box{height: f64, width: f64}) -> nil",
           "argument 1, field 1 of Box: width at the caller, height at the server"},
          {"([{str: Item{name: str, count: u32}}]) -> nil", "([{str: Item{name: str, count: str}}]) -> nil",
           "argument 1, Item.count: u32 at the caller, str at the server"},
          {"(i64) -> nil", "(i32) -> nil", "argument 1: i64 at the caller, i32 at the server"},
          {"(u32) -> nil", "(i32) -> nil", "argument 1: u32"},
          {"(i32) -> nil", "(u64) -> nil", "argument 1: i32"},
          {"(i64) -> nil", "(f64) -> nil", "argument 1: i64"},
          {"(?i32) -> nil", "(i32) -> nil", "argument 1: ?i32 at the caller, i32 at the server"},
          {"(<bool | str | f64>) -> nil", "(<bool | str>) -> nil",
           "argument 1: <bool | str | f64> at the caller"},
          {"(str) -> nil", "(bin) -> nil", "argument 1: str at the caller, bin at the server"},
          {"(str, i32) -> nil", "(str) -> nil", "the caller sends 2 arguments, the server takes 1 at most"},
          {"(str) -> nil", "(str, i32) -> nil", "the caller sends 1 argument, the server wants 2"},
          {"(str, stream i32) -> nil", "(str) -> nil", "the caller has a stream among the arguments"},
          {"() -> nil", "() -> stream i32", "the server has a stream as the result"},
          {"(u8<open = 0, shut = 1>) -> nil", "(u8<open = 0, paid = 1, shut = 2>) -> nil",
           "argument 1: shut = 1 at the caller, paid = 1 at the server"},
          {"(u8<shut = 1>) -> nil", "(u8<open = 0, shut = 2>) -> nil",
           "argument 1: shut = 1 at the caller, shut = 2 at the server"},
          {"() -> Order{state: u8<shut = 1>}", "() -> Order{state: u8<paid = 1>}",
           "result, Order.state: paid = 1 at the server, shut = 1 at the caller"},
          {"() -> str", "() -> nil", "result: nil at the server, str at the caller"}});
}

TEST(SchemaCheck, what_makes_no_sense_is_refused) {
  const std::string nested = "(" + std::string(2000, '[') + "i32" + std::string(2000, ']') + ") -> nil";
  expect({{"", "() -> nil", "what the caller says of its types cannot be read"},
          {"(", "() -> nil", "the caller says"},
          {"() -> nil and more", "() -> nil", "the caller says"},
          {"(Item{name) -> nil", "() -> nil", "the caller says"},
          {"(u8<) -> nil", "() -> nil", "the caller says"},
          {"(u8<a>) -> nil", "() -> nil", "the caller says"},
          {"(u8<a = >) -> nil", "() -> nil", "the caller says"},
          {nested, "() -> nil", "the caller says"},
          {"(" + std::string(max_schema_bytes, 'x') + ") -> nil", "() -> nil", "the caller says"},
          {"() -> nil", "() ->", "what the server says of its types cannot be read"}});
}

// Cut off, repeated and modified anywhere: it still answers, and soon.
TEST(SchemaCheck, whatever_a_peer_says_is_answered) {
  const std::string whole =
      "(Node{value: i64[ms], children: [Node], names: {str: ?<bool | (u8, bin)>}}, optional f32, stream str) "
      "-> stream Node, u8";
  std::mt19937 random(20261125);  // NOLINT: the same every time
  for (int round = 0; round < 20'000; ++round) {
    std::string text = whole;
    for (unsigned turn = 1 + random() % 3; turn > 0; --turn) {
      const std::size_t at = random() % text.size();
      if (const unsigned what = random() % 3; what == 0)
        text[at] = whole[random() % whole.size()];
      else if (what == 1)
        text.erase(at, 1 + random() % 8);
      else
        text.insert(at, whole.substr(random() % whole.size(), random() % 8));
      if (text.empty()) text = "(";
    }
    static_cast<void>(why_not_callable(text, whole));
    static_cast<void>(why_not_callable(whole, text));
  }
  EXPECT_FALSE(why_not_callable(whole, whole));
}

TEST(Schema, durations_have_units) {
  SchemaText text;
  using Frame = std::chrono::duration<float, std::ratio<1, 60>>;
  describe<std::tuple<std::chrono::nanoseconds, std::chrono::milliseconds, std::chrono::seconds,
                      std::chrono::days, Frame>>(text);
  EXPECT_EQ(text.text, "(i64[ns], i64[ms], i64[s], i64[d], f32[1/60s])");
}

TEST(Schema, parameters_that_may_be_left_out_say_so) {
  SchemaText text;
  describe_method<std::tuple<std::string, int, bool>, 1, std::string, void, void>(text);
  EXPECT_EQ(text.text, "(str, optional i32, optional bool, stream str) -> nil");
}

}  // namespace
}  // namespace weir::rpc
