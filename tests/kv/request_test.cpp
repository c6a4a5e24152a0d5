// The request parser: the requests that it finds, however the bytes arrive.
#include "kv/resp/request.hpp"

#include <gtest/gtest.h>

namespace weir::kv {
namespace {

struct Case {
  const char* name;
  std::string input;
  std::vector<std::vector<std::string>> requests;
  std::string error = {};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"array", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", {{"GET", "a"}}},
      {"two_in_a_row", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", {{"PING"}, {"QUIT"}}},
      {"empty_array_is_skipped", "*0\r\n*1\r\n$1\r\na\r\n", {{}, {"a"}}},
      {"negative_array_is_skipped", "*-1\r\n*1\r\n$1\r\na\r\n", {{}, {"a"}}},
      {"empty_argument", "*2\r\n$1\r\na\r\n$0\r\n\r\n", {{"a", ""}}},
      {"binary_argument", std::string("*1\r\n$4\r\n\0\r\n\xff\r\n", 14), {{std::string("\0\r\n\xff", 4)}}},
      {"inline_command", "SET k \"a b\"\r\n", {{"SET", "k", "a b"}}},
      {"inline_command_without_cr", "PING\n", {{"PING"}}},
      {"empty_line_is_skipped", "\r\nPING\r\n", {{}, {"PING"}}},
      {"count_that_is_no_number", "*abc\r\n", {}, "Protocol error: invalid multibulk length"},
      {"count_too_large", "*2147483648\r\n", {}, "Protocol error: invalid multibulk length"},
      {"argument_without_dollar", "*1\r\n:1\r\n", {}, "Protocol error: expected '$', got ':'"},
      {"length_that_is_no_number", "*1\r\n$x\r\n", {}, "Protocol error: invalid bulk length"},
      {"negative_length", "*1\r\n$-1\r\n", {}, "Protocol error: invalid bulk length"},
      {"length_above_the_limit", "*1\r\n$1048577\r\n", {}, "Protocol error: invalid bulk length"},
      {"unbalanced_quotes", "ECHO \"a\r\n", {}, "Protocol error: unbalanced quotes in request"},
      {"error_after_a_request", "PING\r\n*x\r\n", {{"PING"}}, "Protocol error: invalid multibulk length"},
      {"large_argument",
       "*2\r\n$40000\r\n" + std::string(40000, 'x') + "\r\n$1\r\ny\r\n",
       {{std::string(40000, 'x'), "y"}}},
  };
  return all;
}

struct Parsed {
  std::vector<std::vector<std::string>> requests;
  std::string error;
};

Parsed parse(std::string_view input, std::size_t step) {
  Parsed result;
  RequestParser parser;
  std::string pending;
  while (!input.empty() && result.error.empty()) {
    std::string_view piece = input.substr(0, step);
    input.remove_prefix(piece.size());
    const auto place = parser.wanted();
    const std::size_t direct = std::min(place.size(), piece.size());
    std::copy_n(piece.data(), direct, place.data());
    parser.filled(direct);
    pending.append(piece.substr(direct));
    if (!parser.wanted().empty()) continue;
    std::size_t used = 0;
    for (;;) {
      const auto status = parser.parse(std::string_view(pending).substr(used), {1 << 20, true});
      if (status == RequestParser::Status::incomplete) {
        pending.resize(used + parser.kept());
        break;
      }
      if (status == RequestParser::Status::failed) {
        result.error = parser.error();
        break;
      }
      auto& words = result.requests.emplace_back();
      for (const Argument& argument : parser.arguments()) words.emplace_back(argument.text);
      used += parser.consumed();
      parser.next();
    }
    pending.erase(0, used);
  }
  return result;
}

class Requests : public ::testing::TestWithParam<Case> {};

TEST_P(Requests, parse_the_same_however_they_are_cut) {
  const Case& test = GetParam();
  const std::size_t size = test.input.size();
  for (const std::size_t step :
       {size, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{1000}}) {
    SCOPED_TRACE(step);
    const Parsed parsed = parse(test.input, step);
    EXPECT_EQ(parsed.requests, test.requests);
    EXPECT_EQ(parsed.error, test.error);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Requests, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

TEST(RequestParser, refuses_strangers_long_requests) {
  for (const auto& [input, error] :
       {std::pair{"*11\r\n", "Protocol error: unauthenticated multibulk length"},
        std::pair{"*1\r\n$16385\r\n", "Protocol error: unauthenticated bulk length"}}) {
    RequestParser parser;
    EXPECT_EQ(parser.parse(input, {1 << 20, false}), RequestParser::Status::failed);
    EXPECT_EQ(parser.error(), error);
  }
}

// Redis accepts as many arguments as fit into the query buffer.
TEST(RequestParser, takes_more_than_a_million_arguments_and_keeps_nothing_of_them) {
  constexpr std::size_t count = 1'100'000;
  std::string request = "*" + std::to_string(count) + "\r\n";
  for (std::size_t i = 0; i < count; ++i) request += "$1\r\nx\r\n";
  RequestParser parser;
  const std::string_view first_half = std::string_view(request).substr(0, request.size() / 2);
  EXPECT_EQ(parser.parse(first_half, {1 << 20, true}), RequestParser::Status::incomplete);
  EXPECT_GT(parser.list_bytes(), count / 2 * sizeof(Argument)) << "what it holds can be counted";
  ASSERT_EQ(parser.parse(request, {1 << 20, true}), RequestParser::Status::complete);
  EXPECT_EQ(parser.arguments().size(), count);
  parser.next();
  EXPECT_LT(parser.list_bytes(), 10'000u);
}

TEST(RequestParser, refuses_lines_that_are_too_long_with_and_without_their_end) {
  for (const auto& [start, error] : {std::pair{"*", "Protocol error: too big mbulk count string"},
                                     std::pair{"*1\r\n$", "Protocol error: too big bulk count string"},
                                     std::pair{"G", "Protocol error: too big inline request"}}) {
    for (const char* end : {"", "\r\n"}) {
      RequestParser parser;
      const std::string input = start + std::string(RequestParser::max_inline, '1') + end;
      EXPECT_EQ(parser.parse(input, {}), RequestParser::Status::failed) << end;
      EXPECT_EQ(parser.error(), error);
    }
  }
}

// One byte at a time, the parser decides before the end comes.
TEST(RequestParser, takes_the_longest_line_however_it_is_cut) {
  const std::string word(RequestParser::max_inline - 1, 'x');
  const std::string input = word + "\r\n";
  for (const std::size_t step : {std::size_t{1}, input.size()}) {
    RequestParser parser;
    auto status = RequestParser::Status::incomplete;
    for (std::size_t arrived = step; arrived <= input.size(); arrived += step) {
      ASSERT_EQ(status, RequestParser::Status::incomplete) << arrived;
      status = parser.parse(std::string_view(input).substr(0, arrived), {});
    }
    ASSERT_EQ(status, RequestParser::Status::complete) << step << parser.error();
    EXPECT_EQ(parser.arguments()[0].text, word);
  }
}

TEST(RequestParser, receives_a_large_argument_into_the_block_that_will_be_stored) {
  RequestParser parser;
  std::string head = "*1\r\n$50000\r\nabc";
  ASSERT_EQ(parser.parse(head, {}), RequestParser::Status::incomplete);
  EXPECT_EQ(parser.kept(), head.size() - 3);
  ASSERT_EQ(parser.wanted().size(), 50002u - 3);
  std::fill(parser.wanted().begin(), parser.wanted().end(), 'z');
  parser.filled(50002 - 3);
  ASSERT_EQ(parser.parse(std::string_view(head).substr(0, parser.kept()), {}),
            RequestParser::Status::complete);
  ASSERT_NE(parser.arguments()[0].block, nullptr);
  EXPECT_EQ(parser.arguments()[0].text, "abc" + std::string(49997, 'z'));
}

TEST(RequestParser, large_argument_takes_memory_as_its_bytes_come) {
  constexpr std::size_t length = 9 * RequestParser::first_block + 7;
  RequestParser parser;
  const std::string head = "*1\r\n$" + std::to_string(length) + "\r\n";
  ASSERT_EQ(parser.parse(head, {}), RequestParser::Status::incomplete);
  EXPECT_LE(parser.wanted().size(), RequestParser::first_block);
  std::size_t came = 0;
  for (std::span<char> place; !(place = parser.wanted()).empty(); came += place.size()) {
    EXPECT_LE(place.size(), came + RequestParser::first_block);
    for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<char>('a' + (came + i) % 23);
    parser.filled(place.size());
  }
  ASSERT_EQ(came, length + 2);
  ASSERT_EQ(parser.parse(head, {}), RequestParser::Status::complete);
  const std::string_view text = parser.arguments()[0].text;
  ASSERT_EQ(text.size(), length);
  for (std::size_t i = 0; i < length; i += 4'999) ASSERT_EQ(text[i], static_cast<char>('a' + i % 23)) << i;
}

}  // namespace
}  // namespace weir::kv
