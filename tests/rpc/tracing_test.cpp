// Spans of calls, as a collector gets them.
#include "rpc/tracing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/write.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "rpc/pool.hpp"
#include "rpc/tracing/otlp_json.hpp"
#include "rpc/tracing/trace_ids.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace traced {

std::string own_trace(weir::rpc::Context& context) { return traceparent(*context.trace()); }
weir::rpc::Result<void> sold_out() {
  return weir::rpc::fail(weir::rpc::Errc::failed, "no \"bolts\" are left");
}

}  // namespace traced

namespace weir::rpc {
namespace {

using Json = nlohmann::json;

// Takes one request a connection, and answers with each of `statuses` in turn, then with 200.
class Collector {
 public:
  explicit Collector(asio::io_context& io)
      : acceptor_(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    asio::co_spawn(io, serve(), [](const std::exception_ptr&) {});
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

  std::vector<int> statuses;
  std::vector<std::string> heads;
  std::vector<Json> bodies;

  std::vector<Json> spans() const {
    std::vector<Json> all;
    for (const Json& body : bodies)
      for (const Json& span : body["resourceSpans"][0]["scopeSpans"][0]["spans"]) all.push_back(span);
    return all;
  }
  Json span(int kind, const std::string& name) const {
    for (const Json& one : spans())
      if (one["kind"] == kind && one["name"] == name) return one;
    return {};
  }

 private:
  asio::awaitable<void> serve() {
    for (;;) {
      asio::ip::tcp::socket socket = co_await acceptor_.async_accept(asio::use_awaitable);
      std::string text;
      const std::size_t head = co_await asio::async_read_until(socket, asio::dynamic_buffer(text), "\r\n\r\n",
                                                               asio::use_awaitable);
      heads.push_back(text.substr(0, head));
      constexpr std::string_view field = "Content-Length: ";
      const std::size_t size = std::stoul(text.substr(text.find(field) + field.size()));
      const std::size_t missing = size - (text.size() - head);
      if (missing > 0)
        co_await asio::async_read(socket, asio::dynamic_buffer(text), asio::transfer_exactly(missing),
                                  asio::use_awaitable);
      int status = 200;
      if (!statuses.empty()) {
        status = statuses.front();
        statuses.erase(statuses.begin());
      }
      if (status == 200) bodies.push_back(Json::parse(text.substr(head)));
      const std::string answer = "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: 0\r\n\r\n";
      co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
    }
  }

  asio::ip::tcp::acceptor acceptor_;
};

class Tracings : public testing_support::RpcTest {
 protected:
  Collector collector{io};

  TracingOptions options() const {
    TracingOptions chosen;
    chosen.service = "shop";
    chosen.collector = collector.address();
    chosen.every = std::chrono::hours(1);  // flush() sends
    return chosen;
  }
  void serve_traced(const Tracing& tracing) {
    ServerOptions of_server;
    of_server.interceptors = {tracing.server()};
    serve<shop::add, traced::own_trace, traced::sold_out>(of_server);
  }
  void with_traced_client(const Tracing& tracing, std::function<asio::awaitable<void>(Client&)> body) {
    run([&]() -> asio::awaitable<void> {
      ConnectOptions of_client = connect_options();
      of_client.interceptors = {tracing.client()};
      auto client = co_await connect(address, of_client);
      if (!client) throw std::runtime_error(client.error().what);
      co_await body(*client);
    });
  }
};

TEST_P(Tracings, a_calls_two_spans_are_of_one_trace) {
  Tracing tracing(io, options());
  serve_traced(tracing);
  with_traced_client(tracing, [&](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<shop::add>(2, 3)).value_or(0), 5);
    EXPECT_TRUE(co_await tracing.flush());
  });
  const Json at_client = collector.span(3, "shop.add"), at_server = collector.span(2, "shop.add");
  EXPECT_EQ(collector.spans().size(), 2u);
  EXPECT_EQ(at_client["traceId"], at_server["traceId"]);
  EXPECT_EQ(at_client["traceId"].get<std::string>().size(), 32u);
  EXPECT_EQ(at_client["spanId"].get<std::string>().size(), 16u);
  EXPECT_EQ(at_server["parentSpanId"], at_client["spanId"]);
  EXPECT_NE(at_server["spanId"], at_client["spanId"]);
  EXPECT_FALSE(at_client.contains("parentSpanId"));
  EXPECT_FALSE(at_client.contains("status"));
  const auto time = [](const Json& span, const char* which) {
    return std::stoull(span[which].get<std::string>());
  };
  EXPECT_LE(time(at_client, "startTimeUnixNano"), time(at_server, "endTimeUnixNano"));
  EXPECT_LE(time(at_server, "startTimeUnixNano"), time(at_server, "endTimeUnixNano"));
  EXPECT_EQ(collector.bodies[0]["resourceSpans"][0]["resource"]["attributes"][0]["value"]["stringValue"],
            "shop");
  EXPECT_TRUE(collector.heads[0].starts_with("POST /v1/traces HTTP/1.1\r\n")) << collector.heads[0];
  EXPECT_EQ(tracing.stats().sent, 2u);
}

TEST_P(Tracings, a_function_sees_its_own_span_within_the_callers_trace) {
  Tracing tracing(io, options());
  serve_traced(tracing);
  const auto outer = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  std::string own;
  with_traced_client(tracing, [&](Client& client) -> asio::awaitable<void> {
    CallOptions call;
    call.trace = &*outer;
    own = (co_await client.call<traced::own_trace>(call)).value_or("");
    EXPECT_TRUE(co_await tracing.flush());
  });
  const Json at_client = collector.span(3, "traced.own_trace"),
             at_server = collector.span(2, "traced.own_trace");
  EXPECT_EQ(at_client["parentSpanId"], "b7ad6b7169203331");
  EXPECT_EQ(own, "00-0af7651916cd43dd8448eb211c80319c-" + at_server["spanId"].get<std::string>() + "-01");
}

TEST_P(Tracings, a_failed_call_says_why_in_its_status) {
  Tracing tracing(io, options());
  serve_traced(tracing);
  with_traced_client(tracing, [&](Client& client) -> asio::awaitable<void> {
    EXPECT_FALSE(co_await client.call<traced::sold_out>());
    EXPECT_TRUE(co_await tracing.flush());
  });
  for (const int kind : {2, 3}) {
    const Json span = collector.span(kind, "traced.sold_out");
    EXPECT_EQ(span["status"]["code"], 2);
    EXPECT_EQ(span["status"]["message"], "no \"bolts\" are left");
    EXPECT_EQ(span["attributes"].back()["key"], "error.type");
    EXPECT_EQ(span["attributes"].back()["value"]["stringValue"], "failed");
  }
}

TEST_P(Tracings, only_sampled_traces_are_exported) {
  TracingOptions chosen = options();
  chosen.sampled = 0;
  Tracing tracing(io, chosen);
  serve_traced(tracing);
  const auto sampled = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  with_traced_client(tracing, [&](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<shop::add>(2, 3));
    EXPECT_TRUE(co_await tracing.flush());
    EXPECT_EQ(collector.bodies.size(), 0u);
    CallOptions call;
    call.trace = &*sampled;
    EXPECT_TRUE(co_await client.call<shop::add>(call, 2, 3));
    EXPECT_TRUE(co_await tracing.flush());
  });
  EXPECT_EQ(collector.spans().size(), 2u);
}

TEST_P(Tracings, calls_of_a_pool_have_their_function_s_name) {
  Tracing tracing(io, options());
  serve_traced(tracing);
  PoolOptions of_pool;
  of_pool.connect = connect_options();
  of_pool.connect.interceptors = {tracing.client()};
  Pool pool(io, static_list({address}), of_pool);
  run([&]() -> asio::awaitable<void> {
    EXPECT_TRUE(co_await pool.call<shop::add>(2, 3));
    EXPECT_TRUE(co_await tracing.flush());
  });
  EXPECT_TRUE(collector.span(3, "shop.add").is_object());
}

TEST_P(Tracings, a_collector_that_is_busy_gets_the_spans_later) {
  collector.statuses = {503, 400};
  Tracing tracing(io, options());
  serve_traced(tracing);
  with_traced_client(tracing, [&](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<shop::add>(2, 3));
    EXPECT_FALSE(co_await tracing.flush());
    EXPECT_EQ(tracing.stats().dropped, 0u);
    EXPECT_EQ(tracing.stats().last_error, "the collector answered 503");
    EXPECT_FALSE(co_await tracing.flush());  // 400: it will never take them
    EXPECT_EQ(tracing.stats().dropped, 2u);
    EXPECT_TRUE(co_await client.call<shop::add>(2, 3));
    EXPECT_TRUE(co_await tracing.flush());
  });
  EXPECT_EQ(collector.spans().size(), 2u);
  EXPECT_EQ(tracing.stats().last_error, "");
}

TEST_P(Tracings, spans_beyond_the_bound_are_dropped_and_counted) {
  TracingOptions chosen = options();
  chosen.max_waiting = 3;
  Tracing tracing(io, chosen);
  serve_traced(tracing);
  with_traced_client(tracing, [&](Client& client) -> asio::awaitable<void> {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(co_await client.call<shop::add>(2, 3));
    EXPECT_TRUE(co_await tracing.flush());
  });
  EXPECT_EQ(collector.spans().size(), 3u);
  EXPECT_EQ(tracing.stats().dropped, 5u);
}

TEST_P(Tracings, nobody_at_the_collectors_address_costs_no_call) {
  TracingOptions chosen = options();
  asio::ip::tcp::acceptor gone(io, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  chosen.collector = "127.0.0.1:" + std::to_string(gone.local_endpoint().port());
  gone.close();
  Tracing tracing(io, chosen);
  serve_traced(tracing);
  with_traced_client(tracing, [&](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<shop::add>(2, 3));
    EXPECT_FALSE(co_await tracing.flush());
  });
  EXPECT_NE(tracing.stats().last_error.find("cannot be reached"), std::string::npos);
  EXPECT_THROW(Tracing(io,
                       [] {
                         TracingOptions bad;
                         bad.collector = "nowhere";
                         return bad;
                       }()),
               std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Over, Tracings, testing::Values("tcp", "rdma"), testing_support::transport_name);

TEST(TraceIds, differ_and_a_share_is_sampled) {
  TraceIds ids(1, 0.25);
  std::set<std::string> all;
  int sampled = 0;
  constexpr int count = 2000;
  for (int i = 0; i < count; ++i) {
    const TraceContext one = ids.next(nullptr);
    all.insert(traceparent(one).substr(0, 52));
    sampled += one.sampled() ? 1 : 0;
    EXPECT_TRUE(parse_traceparent(traceparent(one)));
  }
  EXPECT_EQ(all.size(), static_cast<std::size_t>(count));
  EXPECT_GT(sampled, count / 5);
  EXPECT_LT(sampled, count * 3 / 10);
}

}  // namespace
}  // namespace weir::rpc
