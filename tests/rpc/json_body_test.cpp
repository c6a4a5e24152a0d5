// Which JSON `weir rpc` and the HTTP gateway accept as arguments: the fields of a function's types, and its
// messages about other fields.
#include "rpc/json/json_body.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rpc/codec/msgpack.hpp"

namespace weir::rpc::json {
namespace {

using testing::HasSubstr;

constexpr std::string_view item = "Item{name: str, count: u32}";

struct Arguments {
  std::string schema, json;
  std::string wrong;  // empty: accepted
};

TEST(RpcArguments, may_only_have_fields_that_the_types_have) {
  const std::string one = "(" + std::string(item) + ") -> nil";
  const std::string no_conut = "Item has no field 'conut'; it has name, count";
  const Arguments rows[] = {
      {one, R"({"count": 1, "name": "nut"})", ""},
      {one, R"({"name": "nut"})", ""},
      {one, R"([["nut", 1]])", ""},
      {one, R"({"name": "nut", "conut": 1})", no_conut},
      {one, R"([{"conut": 1}])", no_conut},
      {"(u32, [" + std::string(item) + "]) -> nil", R"([1, [{"name": "a"}, {"conut": 1}]])", no_conut},
      {"(?" + std::string(item) + ") -> nil", R"({"conut": 1})", no_conut},
      {"(?" + std::string(item) + ") -> nil", "null", ""},
      {"({str: " + std::string(item) + "}) -> nil", R"({"any key": {"conut": 1}})", no_conut},
      {"(<u32 | " + std::string(item) + ">) -> nil", R"([[1, {"conut": 1}]])", no_conut},
      {"(Box{first: " + std::string(item) + ", second: Item}) -> nil", R"({"second": {"conut": 1}})",
       no_conut},
      {"(Box{first: " + std::string(item) + "}) -> nil", R"({"third": 1})", "Box has no field 'third'"},
      {"(u8<open = 0, shut = 1>) -> nil", R"("shut")", ""},
      {"(u8<open = 0, shut = 1>) -> nil", "7", ""},
      {"(u8<open = 0, shut = 1>) -> nil", R"("paid")", "there is no 'paid' among open, shut"},
      {"(any) -> nil", R"({"conut": 1})", ""},
      {"(Item{name", R"({"conut": 1})", ""},
      {"", R"({"conut": 1})", ""}};
  for (const auto& [schema, json, wrong] : rows) {
    const auto body = body_from_json(json, schema);
    EXPECT_EQ(body.has_value(), wrong.empty()) << schema << " " << json;
    EXPECT_THAT(body ? "" : body.error(), HasSubstr(wrong)) << schema;
  }
}

TEST(RpcArguments, of_a_stream_are_checked_one_by_one) {
  const std::string schema = "(u32, stream " + std::string(item) + ") -> u32";
  EXPECT_TRUE(item_from_json(R"({"name": "nut"})", schema));
  EXPECT_FALSE(item_from_json(R"({"conut": 1})", schema));
  EXPECT_TRUE(body_from_json("[1]", schema));
}

TEST(RpcArguments, that_are_no_json_are_shown_in_part_and_with_the_place) {
  const auto brief = body_from_json("[2", "");
  ASSERT_FALSE(brief);
  EXPECT_EQ(brief.error(), "'[2' is no JSON: it goes wrong at byte 3");
  const std::string many(5000, 'x');
  const auto lengthy = body_from_json("[\"" + many + "\",\n here \"" + many + "\"]", "");
  ASSERT_FALSE(lengthy);
  EXPECT_LT(lengthy.error().size(), 150u);
  EXPECT_THAT(lengthy.error(), HasSubstr("xx\",  here \"xx"));
  EXPECT_THAT(lengthy.error(), testing::StartsWith("'..."));
  const auto large = body_from_json(std::string(5000, '1'), "");
  ASSERT_FALSE(large);
  EXPECT_LT(large.error().size(), 150u);
  EXPECT_THAT(large.error(), HasSubstr("out of range"));
}

TEST(RpcArguments, that_nest_too_deeply_are_refused) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(body_from_json(nested(64), ""));
  for (const std::size_t depth : {65u, 1'000'000u}) {
    const auto body = body_from_json(nested(depth), "");
    ASSERT_FALSE(body);
    EXPECT_THAT(body.error(), HasSubstr("nests"));
    EXPECT_FALSE(item_from_json(nested(depth), ""));
  }
}

// Looking at all elements for each one, or at all keys, would not end within the test's time.
TEST(RpcArguments, of_many_parts_are_read_in_one_pass) {
  std::string objects("[["), keys("[{");
  for (int i = 0; i < 300'000; ++i) objects += i == 0 ? "{}" : ",{}";
  for (int i = 0; i < 200'000; ++i)
    keys.append(i == 0 ? "\"" : ",\"")
        .append(std::to_string(i % 199'999))
        .append("\":")
        .append(i < 199'999 ? "1" : "2");
  EXPECT_TRUE(body_from_json(objects + "]]", "([any]) -> nil"));
  const auto body = body_from_json(keys + "}]", "({str: i32}) -> nil");
  ASSERT_TRUE(body);
  const auto shown = json_from_body(*body, "", BodyOf::item);  // the last of two equal keys counts
  EXPECT_THAT(shown.value_or(""), testing::StartsWith(R"([{"0":2,"1":1,)"));
}

TEST(RpcArguments, of_which_a_key_nests_too_deeply_keep_it_as_text) {
  for (const std::size_t depth : {65u, 1'000'000u}) {
    const std::string key = std::string(depth, '[') + std::string(depth, ']');
    const auto body = body_from_json("{\"" + key + "\": 1}", "({[any]: i32}) -> nil");
    EXPECT_EQ(body, body_from_json("{\"" + key + "\": 1}", "({str: i32}) -> nil")) << depth;
  }
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

// Values that JSON cannot express follow the type, and are printed in the same form.
TEST(RpcArguments, that_json_has_no_words_for_go_and_come_back) {
  using namespace std::string_view_literals;
  struct Row {
    std::string_view type, json, body;
  };
  const Row rows[] = {
      {"{i32: str}", R"({"-1":"b","7":"a"})",
       "\x82\xff\xa1"
       "b\x07\xa1"
       "a"sv},
      {"{u64: u8}", R"({"18446744073709551615":1})", "\x81\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv},
      {"{bool: i8}", R"({"true":1})", "\x81\xc3\x01"sv},
      {"{(i32, i32): i32}", R"({"[1,2]":3})", "\x81\x92\x01\x02\x03"sv},
      {"{i32: {i32: bin}}", R"({"1":{"2":"0x00ff"}})", "\x81\x01\x81\x02\xc4\x02\x00\xff"sv},
      {"{str: i32}", R"({"1":2})",
       "\x81\xa1"
       "1\x02"sv},
      {"bin", R"("0x00ff")", "\xc4\x02\x00\xff"sv},
      {"[?bin]", R"(["0x01",null])", "\x92\xc4\x01\x01\xc0"sv},
      {"u8<open = 0, shut = 1>", R"("shut")", "\x01"sv},
      {"[i8<low = -1>]", R"(["low",5])", "\x92\xff\x05"sv},
      {"str", R"("0x00")",
       "\xa4"
       "0x00"sv}};
  for (const auto& [type, json, body] : rows) {
    SCOPED_TRACE(type);
    const std::string taken = "(u8, " + std::string(type) + ") -> nil";
    std::vector<std::byte> expected = bytes_of(body);
    const auto as_item = item_from_json(json, "(stream " + std::string(type) + ") -> nil");
    EXPECT_EQ(as_item.value_or(bytes_of("?")), expected);
    const auto arguments = body_from_json("[5," + std::string(json) + "]", taken);
    expected.insert(expected.begin(), {std::byte{0x92}, std::byte{5}});
    EXPECT_EQ(arguments.value_or(bytes_of("?")), expected);
    const auto shown = json_from_body(bytes_of(body), "() -> stream " + std::string(type), BodyOf::item);
    EXPECT_EQ(shown.value_or("?"), json);
  }
}

TEST(RpcArguments, in_aggregates_and_variants_go_by_their_types_too) {
  using namespace std::string_view_literals;
  const auto named = body_from_json(R"({"data":"0xff"})", "(Box{name: str, data: bin}) -> nil");
  EXPECT_EQ(named.value_or(bytes_of("?")), bytes_of("\x91\x81\xa4"
                                                    "data\xc4\x01\xff"sv));
  const auto listed = body_from_json(R"([["a","0xff"]])", "(Box{name: str, data: bin}) -> nil");
  EXPECT_EQ(listed.value_or(bytes_of("?")), bytes_of("\x91\x92\xa1"
                                                     "a\xc4\x01\xff"sv));
  const auto chosen = body_from_json(R"([[1,"0xff"]])", "(<str | bin>) -> nil");
  EXPECT_EQ(chosen.value_or(bytes_of("?")), bytes_of("\x91\x92\x01\xc4\x01\xff"sv));
}

TEST(RpcResult, that_nests_too_deeply_is_not_shown) {
  const std::vector<std::byte> deep(1'000'000, std::byte{0x91});
  const auto json = json_from_body(deep, "", BodyOf::result);
  ASSERT_FALSE(json);
}

// Each key is quoted once more than the one inside it, which doubles its backslashes.
TEST(RpcResult, whose_maps_are_keys_of_maps_within_each_other_is_shown_while_that_is_short) {
  const auto shown = [](std::size_t keys_around) {
    std::string body(keys_around + 1, '\x81');  // each map is the first key of the map around it
    for (std::size_t map = 0; map <= keys_around; ++map) body += map == 0 ? "\x01\x02" : "\x02";
    return json_from_body(bytes_of(body), "", BodyOf::item).value_or("?");
  };
  EXPECT_EQ(shown(0), R"({"1":2})");
  EXPECT_EQ(shown(2), R"({"{\"{\\\"1\\\":2}\":2}":2})");
  ASSERT_EQ(shown(3), "?");
  EXPECT_EQ(shown(63), "?");
}

// Searching all keys for each one would not end within the test's time.
TEST(RpcResult, that_is_a_large_map_is_shown_with_the_last_value_of_each_key) {
  constexpr std::uint32_t count = 400'000;
  Bytes body;
  MsgpackWriter to(body);
  to.map(count + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    to.unsigned_integer(i);
    to.unsigned_integer(i % 10);
  }
  to.unsigned_integer(1);
  to.text("last");
  const auto json = json_from_body(body.span(), "() -> stream {u32: any}", BodyOf::item);
  ASSERT_TRUE(json);
  EXPECT_THAT(*json, testing::StartsWith(R"({"0":0,"1":"last","2":2,)"));
  EXPECT_THAT(*json, testing::EndsWith(R"(,"399999":9})"));
}

TEST(RpcResult, is_shown_as_it_is_where_it_is_not_of_the_type) {
  struct Row {
    std::string type;
    std::string_view body;
    std::string shown;
  };
  using namespace std::string_view_literals;
  const Row rows[] = {{"?{str: i32}", "\xc0"sv, "null"},
                      {"?(i32, str)", "\xc0"sv, "null"},
                      {"?[i32]", "\xc0"sv, "null"},
                      {"?Item{name: str}", "\xc0"sv, "null"},
                      {"{str: i32}", "\x92\x01\x02"sv, "[1,2]"},
                      {"(i32, i32)", "\x05"sv, "5"},
                      {"(i32, i32)", "\x93\x01\x02\x03"sv, "[1,2,3]"},
                      {"Item{name: str}", "\x92\xa1x\x02"sv, R"(["x",2])"},
                      {"[{str: i32}]", "\x92\x80\x07"sv, "[{},7]"},
                      {"(i32, i32)", "\x92\x01\x02"sv, "[1,2]"},
                      {"Item{name: str}", "\x91\xa1x"sv, R"({"name":"x"})"}};
  for (const auto& [type, body, shown] : rows) {
    const auto json = json_from_body(bytes_of(body), "() -> stream " + type, BodyOf::item);  // in one line
    EXPECT_EQ(json.value_or("?"), shown) << type;
  }
}

TEST(RpcArguments, of_functions_in_another_codec_are_none_for_json) {
  EXPECT_EQ(no_json_for("shop.add", "(i32, i32) -> i32", "msgpack"), std::nullopt);
  EXPECT_EQ(no_json_for("shop.add", "", ""), std::nullopt);
  EXPECT_THAT(
      no_json_for("shop.price", "(shop.pb.Order) -> shop.pb.Receipt", "protobuf").value_or(""),
      HasSubstr("shop.price(shop.pb.Order) -> shop.pb.Receipt speaks protobuf, and JSON becomes MessagePack "
                "only: call it from a program"));
}

TEST(RpcArguments, that_are_words_become_json) {
  for (const auto& [word, json] :
       {std::pair("2", "2"), std::pair("-1.5", "-1.5"), std::pair("null", "null"), std::pair("[1]", "[1]"),
        std::pair("bolt", "\"bolt\""), std::pair("\"bolt\"", "\"bolt\""), std::pair("a \"b", R"("a \"b")")})
    EXPECT_EQ(json_of_word(word), json) << word;
}

}  // namespace
}  // namespace weir::rpc::json
