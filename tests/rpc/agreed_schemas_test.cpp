// What a server remembers about its callers' types, and how it treats what a caller reports.
#include "rpc/codec/agreed_schemas.hpp"

#include <gtest/gtest.h>

#include "rpc/codec/method_schema.hpp"
#include "rpc/wire/hello.hpp"

namespace weir::rpc {
namespace {

TEST(Hello, is_a_word_whose_other_bits_mean_nothing) {
  const Hello hello{1, 5};
  EXPECT_EQ(word_of(hello), 0x0000'0001'0000'0005u);
  EXPECT_EQ(hello_of(word_of(hello)), hello);
  EXPECT_EQ(hello_of(0xffff'0001'0000'0005), hello);
  EXPECT_EQ(hello_of(0), Hello());
  EXPECT_FALSE(Hello().knows(Feature::schemas));
}

TEST(AgreedSchemas, a_text_is_compared_once) {
  AgreedSchemas schemas;
  const MethodSchema served = numbered_schema("(i64) -> nil");
  const MethodSchema narrow = numbered_schema("(i32) -> nil");
  const MethodSchema other = numbered_schema("(str) -> nil");
  EXPECT_FALSE(schemas.why_not("f", served, {served.id, {}}));
  EXPECT_EQ(schemas.compared(), 0u);
  EXPECT_FALSE(schemas.why_not("f", served, {narrow.id, narrow.text}));
  EXPECT_FALSE(schemas.why_not("f", served, {narrow.id, {}}));
  for (const std::string_view text : {std::string_view(other.text), std::string_view()}) {
    const auto why = schemas.why_not("f", served, {other.id, text});
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, Errc::schema_mismatch);
    EXPECT_EQ(
        why->what,
        "f: argument 1: str at the caller, i64 at the server; bring both ends to releases that go together "
        "(weir rpc diff)");
  }
  EXPECT_EQ(schemas.compared(), 2u);
  EXPECT_FALSE(schemas.why_not("f", MethodSchema{"(?) -> ?", 0}, {other.id, {}}));
}

TEST(AgreedSchemas, a_caller_that_knows_no_enumerators_is_served) {
  AgreedSchemas schemas;
  const MethodSchema served = numbered_schema("(u8<open = 0>) -> nil", "(u8) -> nil");
  const MethodSchema older = numbered_schema("(u8) -> nil");
  EXPECT_FALSE(schemas.why_not("f", served, {older.id, {}}));
  EXPECT_EQ(schemas.compared(), 0u);
  EXPECT_TRUE(schemas.why_not("f", served, {served.id + 1, "(u8<open = 1>) -> nil"}));
}

TEST(AgreedSchemas, types_that_were_not_told_are_asked_for) {
  AgreedSchemas schemas;
  const MethodSchema served = numbered_schema("(i64) -> nil");
  EXPECT_EQ(schemas.why_not("f", served, {77, {}})->code, Errc::schema_mismatch);
  EXPECT_EQ(schemas.compared(), 0u);
}

// A client that reports different types each time makes the server forget, not grow.
TEST(AgreedSchemas, are_bounded) {
  AgreedSchemas schemas;
  const MethodSchema served = numbered_schema("(i64) -> nil");
  for (std::uint64_t id = 1; id <= 3 * AgreedSchemas::most_verdicts; ++id)
    static_cast<void>(schemas.why_not("f", served, {id, "(i32) -> nil"}));
  EXPECT_EQ(schemas.why_not("f", served, {1, {}})->code, Errc::schema_mismatch);
}

TEST(AgreedSchemas, a_caller_that_says_less_than_it_claims_is_refused) {
  Bytes whole;
  append(whole, {7, "(i32) -> nil"});
  const auto read = read_caller_schema(whole.span());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, 7u);
  EXPECT_EQ(read->text, "(i32) -> nil");
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(read_caller_schema(whole.span().first(size)).error().code, Errc::bad_arguments) << size;
}

}  // namespace
}  // namespace weir::rpc
