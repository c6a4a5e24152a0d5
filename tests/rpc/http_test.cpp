// HTTP requests as a server's gateway reads and answers them: a conversation whose server is the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "rpc/error_details.hpp"
#include "rpc/http/conversation.hpp"
#include "rpc/json/json_codec.hpp"
#include "rpc/wire/hello.hpp"

namespace weir::rpc::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct Heard {
  FrameHeader header;
  std::string body;
};

// A client, the conversation, and a server that keeps what it hears.
class Talk final : private FrameSink {
 public:
  explicit Talk(HttpOptions options = {}, bool credentials = false, bool over_loopback = false) {
    auto terms = std::make_shared<Terms>();
    terms->options = std::move(options);
    terms->registry = &registry;
    terms->sends_credentials = credentials;
    conversation = std::make_unique<Conversation>(terms, over_loopback, now);
  }

  Talk& says(std::string_view text) {
    conversation->received(text, now);
    return goes_on();
  }
  Talk& goes_on() {
    for (Bytes frames; conversation->next(frames, now); frames.clear())
      EXPECT_TRUE(reader_.feed(frames.span(), *this));
    return *this;
  }
  // What the client gets.
  std::string gets() {
    std::string all;
    while (!conversation->unsent().empty()) {
      all.append(conversation->unsent());
      conversation->sent(conversation->unsent().size(), now);
      goes_on();
    }
    return all;
  }
  Talk& answers(FrameHeader header, std::string_view body = {}) {
    header.body_bytes = static_cast<std::uint32_t>(body.size());
    Bytes frame;
    encode(header, frame.grow(frame_header_bytes));
    frame.append(as_bytes(body));
    conversation->replied(frame.span(), now);
    return *this;
  }
  Talk& replies(std::uint64_t id, std::string_view body, Errc failure = {}) {
    FrameHeader header;
    header.kind = FrameKind::reply;
    header.id = id;
    header.status = static_cast<std::uint16_t>(failure);
    return answers(header, body);
  }
  Talk& sends(FrameKind kind, std::uint64_t id = 0) {
    FrameHeader header;
    header.kind = kind;
    header.id = id;
    return answers(header);
  }
  std::vector<Heard> requests() const {
    std::vector<Heard> found;
    for (const Heard& one : heard)
      if (one.header.kind == FrameKind::request) found.push_back(one);
    return found;
  }

  Registry registry;
  Conversation::TimePoint now{1000s};
  std::unique_ptr<Conversation> conversation;
  std::vector<Heard> heard;

 private:
  bool on_frame(Frame& frame) override {
    heard.push_back({frame.header, text_of(frame.body)});
    return true;
  }
  FrameReader reader_{FrameLimits()};
};

constexpr std::string_view add = "POST /shop.add HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n[2, 3]";

HttpOptions small() {
  HttpOptions options;
  options.max_head_bytes = 256;
  options.max_body_bytes = 16;
  options.origins = {"https://shop.example"};
  options.hosts = {"proxy.example"};
  return options;
}

struct Request {
  std::string_view what, text;
  std::string_view answer;  // it begins so; empty: a call is made
  std::string_view function = "shop.add", body = "[2, 3]";
};

const std::string long_field = "GET / HTTP/1.1\r\nHost: h\r\nx: " + std::string(300, 'x') + "\r\n\r\n";
const std::string long_chunk_head =
    "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(300, 'x');
const std::string long_trailer =
    "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\na: " + std::string(300, 'x');

const Request requests[] = {
    {"a call", add, ""},
    {"no arguments", "POST /shop.list HTTP/1.1\r\nHost: h\r\n\r\n", "", "shop.list", ""},
    {"chunks",
     "POST /shop.add HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[2\r\n4;a=b\r\n, "
     "3]\r\n0\r\n\r\n",
     ""},
    {"chunks with a trailer",
     "POST /shop.add HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n[2, 3]\r\n0\r\nhost: "
     "evil\r\n\r\n",
     ""},
    {"the absolute form",
     "POST http://h:1/shop.add?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n[2, 3]", ""},
    {"a name with percents", "POST /%73hop%2eadd HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\n[2, 3]", ""},
    {"HTTP/1.0 without a host", "POST /shop.add HTTP/1.0\r\nContent-Length: 6\r\n\r\n[2, 3]", ""},
    {"an allowed origin",
     "POST /shop.add HTTP/1.1\r\nHost: h\r\nOrigin: https://shop.example\r\nContent-Length: 6\r\n\r\n[2, 3]",
     ""},
    {"the list of functions", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "", "weir.methods", "\x90"},
    {"statistics", "HEAD /calls HTTP/1.1\r\nHost: h\r\n\r\n", "", "weir.stats", "\x90"},
    {"metrics", "GET /metrics?name=x HTTP/1.1\r\nHost: h\r\n\r\n", "", "weir.stats", "\x90"},
    {"health", "GET /health HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 OK\r\n"},
    {"what may be done", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
     "HTTP/1.1 204 No Content\r\nAllow: GET, HEAD, POST, OPTIONS\r\n"},
    {"a function by GET", "GET /shop.add HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 405 "},
    {"another method", "PUT /shop.add HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405 "},
    {"an unknown origin",
     "POST /shop.add HTTP/1.1\r\nHost: h\r\nOrigin: null\r\nContent-Length: 6\r\n\r\n[2, 3]",
     "HTTP/1.1 403 "},
    {"no host", "POST /shop.add HTTP/1.1\r\nContent-Length: 6\r\n\r\n[2, 3]", "HTTP/1.1 400 "},
    {"two hosts", "GET /health HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n", "HTTP/1.1 400 "},
    {"two lengths", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nContent-Length: 7\r\n\r\n[2, 3]",
     "HTTP/1.1 400 "},
    {"a length and chunks",
     "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "HTTP/1.1 400 "},
    {"chunks and a length",
     "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
     "HTTP/1.1 400 "},
    {"two codings", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
     "HTTP/1.1 501 "},
    {"another coding", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
    {"a length that is none", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
    {"a chunk that is none", "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
     "HTTP/1.1 400 "},
    {"a space before a colon", "GET /health HTTP/1.1\r\nHost : h\r\n\r\n", "HTTP/1.1 400 "},
    {"a line without a carriage return", "GET /health HTTP/1.1\nHost: h\r\n\r\n", "HTTP/1.1 505 "},
    {"a field without a carriage return", "GET /health HTTP/1.1\r\nHost: h\nx: y\r\n\r\n", "HTTP/1.1 400 "},
    {"a newer version", "GET /health HTTP/2.0\r\nHost: h\r\n\r\n", "HTTP/1.1 505 "},
    {"no path", "POST shop.add HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400 "},
    {"a percent without digits", "POST /%zz HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400 "},
    {"half a percent", "POST /a%4 HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 400 "},
    {"an expectation", "POST /a HTTP/1.1\r\nHost: h\r\nExpect: gold\r\n\r\n", "HTTP/1.1 417 "},
    {"a compressed body", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\n\r\n", "HTTP/1.1 415 "},
    {"a time that is none", "POST /a HTTP/1.1\r\nHost: h\r\nWeir-Timeout: nan\r\n\r\n", "HTTP/1.1 400 "},
    {"a time beyond an hour", "POST /a HTTP/1.1\r\nHost: h\r\nWeir-Timeout: 3601\r\n\r\n", "HTTP/1.1 400 "},
    {"a long head", long_field, "HTTP/1.1 431 "},
    {"a long chunk head", long_chunk_head, "HTTP/1.1 431 "},
    {"a long trailer", long_trailer, "HTTP/1.1 4"},
    {"a long body", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 17\r\n\r\n", "HTTP/1.1 413 "},
    {"a body of 2^64", "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n",
     "HTTP/1.1 4"},
    {"many chunks",
     "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n9\r\n",
     "HTTP/1.1 413 "},
};

void expect_outcome(const Request& row, Talk& talk) {
  if (!row.answer.empty()) {
    EXPECT_THAT(talk.gets(), StartsWith(row.answer));
    EXPECT_TRUE(talk.requests().empty());
    return;
  }
  EXPECT_EQ(talk.gets(), "");
  const std::vector<Heard> heard = talk.requests();
  ASSERT_EQ(heard.size(), 1u);
  const Heard& call = heard.front();
  EXPECT_EQ(call.header.method, method_id(row.function));
  EXPECT_EQ(call.body, row.body);
  EXPECT_EQ(call.header.codec, row.body == "\x90" ? MessagePack::number : json_codec);
  EXPECT_EQ(call.header.timeout_us, 30'000'000u);
}

TEST(HttpRequests, are_calls_pages_or_refused) {
  for (const Request& row : requests) {
    SCOPED_TRACE(row.what);
    Talk talk(small());
    expect_outcome(row, talk.says(row.text));
  }
}

TEST(HttpRequests, in_single_bytes_are_the_same) {
  for (const Request& row : requests) {
    SCOPED_TRACE(row.what);
    Talk talk(small());
    for (const char& one : row.text) talk.says({&one, 1});
    expect_outcome(row, talk);
  }
}

TEST(HttpRequests, over_loopback_name_this_host) {
  struct Row {
    std::string_view host;
    bool is_served;
  };
  for (const auto& [host, is_served] :
       {Row{"127.0.0.1:9000", true}, Row{"[::1]", true}, Row{"localhost", true},
        Row{"shop.localhost:1", true}, Row{"proxy.example:80", true}, Row{"evil.example:9000", false},
        Row{"evil.example", false}}) {
    Talk talk(small(), false, true);
    talk.says("GET /health HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n");
    EXPECT_THAT(talk.gets(), StartsWith(is_served ? "HTTP/1.1 200 " : "HTTP/1.1 421 ")) << host;
  }
}

TEST(HttpRequests, carry_their_credentials_time_and_trace_each) {
  Talk talk({}, true);
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  talk.says(
      "POST /a HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer secret\r\nWeir-Timeout: 0.25\r\nTraceparent: " +
      trace + "\r\n\r\n");
  talk.replies(1, "\xc0");
  static_cast<void>(talk.gets());
  talk.says("POST /b HTTP/1.1\r\nHost: h\r\nAuthorization: Basic x\r\n\r\n");
  std::vector<FrameKind> kinds;
  for (const Heard& one : talk.heard) kinds.push_back(one.header.kind);
  using enum FrameKind;
  EXPECT_THAT(kinds, testing::ElementsAre(settings, credentials, request, credentials, request));
  EXPECT_EQ(talk.heard[1].body, "secret");
  EXPECT_EQ(talk.heard[3].body, "");
  EXPECT_EQ(talk.heard[2].header.timeout_us, 250'000u);
  ASSERT_EQ(talk.heard[2].body.size(), trace_context_bytes);
  const auto sent = as_bytes(talk.heard[2].body).first<trace_context_bytes>();
  EXPECT_EQ(traceparent(decode_trace(sent)), trace);
  EXPECT_TRUE(hello_of(talk.heard[0].header.id).knows(Feature::details));
}

TEST(HttpRequests, sent_ahead_are_answered_in_their_order) {
  Talk talk;
  talk.says(std::string(add) + std::string(add) + std::string(add));
  for (std::uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(talk.requests().size(), id);
    EXPECT_EQ(talk.conversation->has_more(), false);
    talk.replies(id, std::string(1, static_cast<char>(id)));
    EXPECT_THAT(talk.gets(), testing::EndsWith("\r\n\r\n" + std::to_string(id) + "\n"));
  }
  EXPECT_FALSE(talk.conversation->is_over());
}

TEST(HttpRequests, sent_ahead_are_not_read_without_bound) {
  Talk talk;
  talk.says(add);
  while (talk.conversation->reads_on()) talk.says(add);
  EXPECT_LT(talk.conversation->held_bytes(), 256u << 10);
  EXPECT_EQ(talk.requests().size(), 1u);
}

TEST(HttpRequests, that_expect_100_continue_get_it_before_their_body) {
  Talk talk({}, true);
  talk.says("POST /a HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
  EXPECT_EQ(talk.heard.back().header.kind, FrameKind::credentials);
  EXPECT_EQ(talk.gets(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(talk.says("5").requests().at(0).body, "5");
}

TEST(HttpAnswers, have_the_causes_name_and_its_status) {
  struct Row {
    Errc code;
    std::string_view status;
  };
  const Row rows[] = {
      {Errc::unknown_method, "404 Not Found"},           {Errc::bad_arguments, "400 Bad Request"},
      {Errc::deadline_exceeded, "504 Gateway Timeout"},  {Errc::overloaded, "503 Service Unavailable"},
      {Errc::draining, "503 Service Unavailable"},       {Errc::denied, "403 Forbidden"},
      {Errc::unauthenticated, "401 Unauthorized"},       {Errc::failed, "500 Internal Server Error"},
      {Errc::wrong_codec, "415 Unsupported Media Type"}, {Errc::too_large, "413 Content Too Large"}};
  for (const auto& [code, status] : rows) {
    Talk talk;
    talk.says(add).replies(1, "why \xff", code);
    const std::string got = talk.gets();
    EXPECT_THAT(got,
                StartsWith("HTTP/1.1 " + std::string(status) + "\r\nContent-Type: application/json\r\n"));
    EXPECT_THAT(got, testing::EndsWith("\r\n\r\n{\"error\":\"" + std::string(name_of(code)) +
                                       "\",\"message\":\"why \xef\xbf\xbd\"}\n"));
    EXPECT_FALSE(talk.conversation->is_over());
  }
}

TEST(HttpAnswers, show_the_details_of_a_failure) {
  Bytes body;
  const std::byte two[] = {std::byte{2}};
  MessagePack::write(body, DetailedFailure{"sold out", "shop.Refusal", two});
  FrameHeader header;
  header.kind = FrameKind::reply;
  header.id = 1;
  header.status = static_cast<std::uint16_t>(Errc::failed);
  header.flags = FrameFlag::detailed;
  Talk talk;
  talk.says(add).answers(header, text_of(body.span()));
  EXPECT_THAT(talk.gets(), HasSubstr(R"("message":"sold out","details":{"type":"shop.Refusal","value":2}})"));
}

TEST(HttpAnswers, of_functions_have_the_names_of_their_fields) {
  Talk talk;
  Registered row;
  row.name = "shop.add";
  row.schema = numbered_schema("(i32, i32) -> Item{name: str, count: u32}");
  talk.registry.add(row);
  talk.says(add).replies(1, "\x92\xa3nut\x05");
  EXPECT_THAT(talk.gets(), HasSubstr("\r\nContent-Length: 25\r\n"));
  talk.says(add).replies(2, "\x92\xa3nut\x05");
  EXPECT_THAT(talk.gets(), testing::EndsWith("\r\n\r\n{\"name\":\"nut\",\"count\":5}\n"));
}

TEST(HttpAnswers, to_head_have_no_body) {
  Talk talk;
  talk.says("HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n").replies(1, "\x90");
  const std::string got = talk.gets();
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(got, testing::EndsWith("\r\n\r\n"));
}

TEST(HttpAnswers, larger_than_allowed_end_the_connection) {
  HttpOptions options;
  options.max_reply_bytes = 8;
  Talk talk(options);
  talk.says(add).replies(1, "123456789");
  EXPECT_THAT(talk.gets(), testing::AllOf(StartsWith("HTTP/1.1 500 "), HasSubstr("too_large"),
                                          HasSubstr("Connection: close")));
  EXPECT_TRUE(talk.conversation->is_over());
}

TEST(HttpAnswers, name_the_page_that_may_read_them) {
  Talk talk(small());
  talk.says("OPTIONS /a HTTP/1.1\r\nHost: h\r\nOrigin: https://shop.example\r\n\r\n");
  EXPECT_THAT(talk.gets(),
              testing::AllOf(HasSubstr("Access-Control-Allow-Origin: https://shop.example\r\n"),
                             HasSubstr("Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n")));
}

TEST(HttpConnection, is_closed_when_the_client_or_the_server_says_so) {
  struct Row {
    std::string_view what;
    std::function<void(Talk&)> act;
    std::string_view answer;  // it begins so, and is the last
  };
  const Row rows[] = {
      {"Connection: close",
       [](Talk& talk) {
         talk.says("POST /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").replies(1, "\xc0");
       },
       "HTTP/1.1 200 "},
      {"HTTP/1.0", [](Talk& talk) { talk.says("POST /a HTTP/1.0\r\n\r\n").replies(1, "\xc0"); },
       "HTTP/1.1 200 "},
      {"a draining server", [](Talk& talk) { talk.says(add).sends(FrameKind::goodbye).replies(1, "\xc0"); },
       "HTTP/1.1 200 "},
      {"a draining server, without a call", [](Talk& talk) { talk.sends(FrameKind::goodbye); }, ""},
      {"refused credentials", [](Talk& talk) { talk.says(add).replies(0, "who?", Errc::unauthenticated); },
       "HTTP/1.1 401 "},
      {"a server that is full",
       [](Talk& talk) { talk.says("POST /a HT").replies(0, "full", Errc::overloaded); }, "HTTP/1.1 503 "},
      {"a server that ends", [](Talk& talk) { talk.conversation->server_ended(talk.now); }, ""},
      {"no memory",
       [](Talk& talk) {
         talk.says("POST /a HT");
         talk.conversation->refuse({Errc::overloaded, "no memory"}, talk.now);
       },
       "HTTP/1.1 503 "}};
  for (const auto& [what, act, answer] : rows) {
    SCOPED_TRACE(what);
    Talk talk;
    act(talk);
    EXPECT_TRUE(talk.conversation->is_over());
    const std::string got = talk.gets();
    EXPECT_THAT(got, StartsWith(answer));
    EXPECT_EQ(got.find("Connection: close") != got.npos, !answer.empty());
    EXPECT_EQ(talk.says(add).gets(), "");
  }
}

TEST(HttpConnection, answers_pings_only_while_a_request_is_under_way) {
  Talk talk;
  talk.sends(FrameKind::ping, 7).goes_on();
  EXPECT_TRUE(talk.heard.empty());
  talk.says(add).sends(FrameKind::ping, 8).goes_on();
  EXPECT_EQ(talk.heard.back().header.kind, FrameKind::pong);
  EXPECT_EQ(talk.heard.back().header.id, 8u);
}

TEST(HttpConnection, has_a_time_limit_in_each_state) {
  struct Row {
    std::string_view what;
    std::function<void(Talk&)> act;
    std::chrono::seconds limit;
    std::string_view answer;  // it begins so
  };
  const Row rows[] = {
      {"nothing comes", [](Talk&) {}, 30s, ""},
      {"half a first head", [](Talk& talk) { talk.says("POST /a HT"); }, 30s, "HTTP/1.1 408 "},
      {"half a body", [](Talk& talk) { talk.says(add.substr(0, add.size() - 1)); }, 30s, "HTTP/1.1 408 "},
      {"nothing after a call",
       [](Talk& talk) {
         talk.says(add).replies(1, "\xc0");
         static_cast<void>(talk.gets());
       },
       60s, ""},
      {"half a later head",
       [](Talk& talk) {
         talk.says(add).replies(1, "\xc0");
         static_cast<void>(talk.gets());
         talk.says("P");
       },
       30s, "HTTP/1.1 408 "},
      {"an answer that is not read",
       [](Talk& talk) {
         talk.says(add).replies(1, "\xc0");
         talk.conversation->sent(1, talk.now);
       },
       60s, ""}};
  for (const auto& [what, act, limit, answer] : rows) {
    SCOPED_TRACE(what);
    Talk talk;
    act(talk);
    EXPECT_EQ(talk.conversation->until() - talk.now, limit);
    talk.now += limit - 1ms;
    talk.conversation->on_time(talk.now);
    EXPECT_FALSE(talk.conversation->is_over());
    talk.now += 1ms;
    talk.conversation->on_time(talk.now);
    EXPECT_TRUE(talk.conversation->is_over());
    EXPECT_THAT(talk.gets(), StartsWith(answer));
  }
}

TEST(HttpConnection, does_not_gain_time_by_single_bytes) {
  Talk talk;
  for (const char& one : add.substr(0, add.size() - 1)) {
    talk.now += 1s;
    talk.says({&one, 1});
    talk.conversation->on_time(talk.now);
  }
  EXPECT_TRUE(talk.conversation->is_over());
}

TEST(HttpConnection, waits_for_a_call_as_long_as_the_server) {
  Talk talk;
  talk.says(add);
  EXPECT_EQ(talk.conversation->until(), Conversation::TimePoint::max());
}

}  // namespace
}  // namespace weir::rpc::http
