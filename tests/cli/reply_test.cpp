// Replies parsed from bytes: every type, any split, and bytes that are not a reply.
#include "cli/client/reply.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/client/reply_count.hpp"

namespace weir::client {
namespace {

using namespace std::string_literals;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

Reply scalar(ReplyType type, std::string text) { return {type, std::move(text), {}}; }
Reply aggregate(ReplyType type, std::vector<Reply> elements) { return {type, {}, std::move(elements)}; }

struct Case {
  std::string wire;
  std::vector<Reply> replies;
};

const Case sound[] = {
    {"+OK\r\n", {scalar(ReplyType::status, "OK")}},
    {"+\r\n", {scalar(ReplyType::status, "")}},
    {"-ERR no\r\n", {scalar(ReplyType::error, "ERR no")}},
    {":-42\r\n", {scalar(ReplyType::integer, "-42")}},
    {":+7\r\n", {scalar(ReplyType::integer, "+7")}},
    {"$5\r\nhello\r\n", {scalar(ReplyType::string, "hello")}},
    {"$0\r\n\r\n", {scalar(ReplyType::string, "")}},
    {"$4\r\n\r\n\r\n\r\n", {scalar(ReplyType::string, "\r\n\r\n")}},
    {"$3\r\na\0b\r\n"s, {scalar(ReplyType::string, "a\0b"s)}},
    {"$-1\r\n", {scalar(ReplyType::null, "")}},
    {"*-1\r\n", {scalar(ReplyType::null, "")}},
    {"_\r\n", {scalar(ReplyType::null, "")}},
    {",1.5e3\r\n", {scalar(ReplyType::real, "1.5e3")}},
    {",inf\r\n", {scalar(ReplyType::real, "inf")}},
    {"#t\r\n#f\r\n", {scalar(ReplyType::boolean, "t"), scalar(ReplyType::boolean, "f")}},
    {"(-12345678901234567890\r\n", {scalar(ReplyType::big_number, "-12345678901234567890")}},
    {"=7\r\ntxt:abc\r\n", {scalar(ReplyType::verbatim, "abc")}},
    {"=2\r\nab\r\n", {scalar(ReplyType::verbatim, "ab")}},
    {"!5\r\nERR x\r\n", {scalar(ReplyType::error, "ERR x")}},
    {"*0\r\n", {aggregate(ReplyType::array, {})}},
    {"*2\r\n+a\r\n*1\r\n:1\r\n",
     {aggregate(ReplyType::array, {scalar(ReplyType::status, "a"),
                                   aggregate(ReplyType::array, {scalar(ReplyType::integer, "1")})})}},
    {"*1\r\n*0\r\n", {aggregate(ReplyType::array, {aggregate(ReplyType::array, {})})}},
    {"%1\r\n+k\r\n~1\r\n:1\r\n",
     {aggregate(ReplyType::map, {scalar(ReplyType::status, "k"),
                                 aggregate(ReplyType::set, {scalar(ReplyType::integer, "1")})})}},
    {">2\r\n+message\r\n+m\r\n:1\r\n",
     {aggregate(ReplyType::push, {scalar(ReplyType::status, "message"), scalar(ReplyType::status, "m")}),
      scalar(ReplyType::integer, "1")}},
    // An attribute precedes a reply and is not one itself, at the top level and within.
    {"|1\r\n+a\r\n+b\r\n:1\r\n", {scalar(ReplyType::integer, "1")}},
    {"*2\r\n|1\r\n+a\r\n*1\r\n+b\r\n:1\r\n:2\r\n",
     {aggregate(ReplyType::array, {scalar(ReplyType::integer, "1"), scalar(ReplyType::integer, "2")})}},
    {"|0\r\n:1\r\n", {scalar(ReplyType::integer, "1")}},
};

const std::string broken[] = {
    "HTTP/1.1 400 Bad Request\r\n",
    "\r\n",
    "+OK\n",
    ":12a\r\n",
    ":\r\n",
    ":99999999999999999999\r\n",
    "#x\r\n",
    "_x\r\n",
    ",\r\n",
    "(12x\r\n",
    "(\r\n",
    "$-2\r\n",
    "$x\r\n",
    "$\r\n",
    "*-2\r\n",
    "* 1\r\n",
    "$3\r\nabcd\r\n",
    "$3\r\nabc\rx",
    "$99999999999999999999\r\n",
    "*4294967297\r\n",
    "$536870913\r\n",
};

std::vector<Reply> take_all(ReplyParser& parser) {
  std::vector<Reply> replies;
  while (auto reply = parser.next()) replies.push_back(std::move(*reply));
  return replies;
}

TEST(ReplyParser, reads_every_type_however_the_bytes_are_split) {
  for (const auto& [wire, replies] : sound)
    for (std::size_t piece = 1; piece <= wire.size(); ++piece) {
      ReplyParser parser;
      std::vector<Reply> read;
      for (std::size_t at = 0; at < wire.size(); at += piece) {
        ASSERT_TRUE(parser.feed(bytes_of(std::string_view(wire).substr(at, piece)))) << wire;
        for (auto& reply : take_all(parser)) read.push_back(std::move(reply));
      }
      EXPECT_EQ(read, replies) << wire << " in pieces of " << piece;
      EXPECT_TRUE(parser.between_replies()) << wire;
    }
}

TEST(ReplyParser, gives_nothing_until_the_last_byte_has_come) {
  for (const auto& [wire, replies] : sound) {
    ReplyParser parser;
    ASSERT_TRUE(parser.feed(bytes_of(std::string_view(wire).substr(0, wire.size() - 1))));
    EXPECT_LT(take_all(parser).size(), replies.size()) << wire;
    EXPECT_FALSE(parser.between_replies()) << wire;
  }
}

TEST(ReplyParser, refuses_what_is_no_reply_and_stays_refusing) {
  for (const auto& wire : broken) {
    ReplyParser parser;
    const auto fed = parser.feed(bytes_of(wire));
    ASSERT_FALSE(fed) << wire;
    EXPECT_EQ(fed.error().kind, ErrorKind::protocol);
    EXPECT_THAT(fed.error().what, testing::HasSubstr("Protocol error"));
    EXPECT_FALSE(parser.feed(bytes_of("+OK\r\n"))) << wire;
    EXPECT_TRUE(take_all(parser).empty()) << wire;
  }
}

TEST(ReplyParser, bounds_nesting_and_lines) {
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += "*1\r\n";
  EXPECT_FALSE(ReplyParser().feed(bytes_of(deep)));
  EXPECT_FALSE(ReplyParser().feed(bytes_of("+" + std::string(70'000, 'x'))));
  EXPECT_TRUE(ReplyParser({.line_bytes = 100'000}).feed(bytes_of("+" + std::string(70'000, 'x'))));
}

TEST(ReplyParser, allocates_for_what_has_arrived_and_not_for_what_was_announced) {
  // They announce half a gigabyte and four thousand million elements; a parser that believes this runs out of
  // memory.
  ReplyParser parser;
  EXPECT_TRUE(parser.feed(bytes_of("*4294967296\r\n*4294967296\r\n$536870912\r\nx")));
  EXPECT_TRUE(take_all(parser).empty());
}

TEST(ReplyCounter, agrees_with_the_parser) {
  for (const auto& [wire, replies] : sound) {
    ReplyCounter counter;
    std::uint64_t counted = 0;
    for (const char c : wire) counted += counter.count(bytes_of(std::string_view(&c, 1))).value();
    const auto pushes = std::ranges::count(replies, ReplyType::push, &Reply::type);
    EXPECT_EQ(counted + static_cast<std::uint64_t>(pushes), replies.size()) << wire;
  }
}

TEST(ReplyCounter, keeps_the_text_of_the_first_error) {
  ReplyCounter counter;
  EXPECT_EQ(counter.count(bytes_of("+OK\r\n!7\r\nERR one\r\n-ERR two\r\n")).value(), 3u);
  EXPECT_EQ(counter.errors(), 2u);
  EXPECT_EQ(counter.first_error(), "ERR one");
}

}  // namespace
}  // namespace weir::client
