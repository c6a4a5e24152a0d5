// Interceptors at both ends, the trace context that travels with a call, and what a server counts.
#include "rpc/interceptor.hpp"

#include <gtest/gtest.h>

#include "rpc/method_stats.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace seen {

std::string trace(weir::rpc::Context& context) {
  return context.trace() ? traceparent(*context.trace()) : "none";
}
asio::awaitable<std::string> trace_later(std::string text, weir::rpc::Context& context) {
  co_return text + trace(context);
}
asio::awaitable<std::string> trace_of_stream(weir::rpc::Reader<int> in, weir::rpc::Context& context) {
  for (;;) {
    const auto item = co_await in.read();
    if (!item) break;
  }
  co_return trace(context);
}

}  // namespace seen

namespace weir::rpc {
namespace {

using Log = std::vector<std::string>;

std::string how(const CallEnd& end) {
  return end.error == nullptr ? "well" : std::string(name_of(end.error->code));
}

class ServerLogger final : public ServerInterceptor {
 public:
  ServerLogger(std::string name, Log& log) : name_(std::move(name)), log_(log) {}
  std::string refuses;
  Result<void> before(Context& context) override {
    log_.push_back(name_ + " before " + std::string(context.method()));
    if (context.method() == refuses) return fail(Errc::denied, "not today");
    return {};
  }
  void after(Context& context, const CallEnd& end) override {
    log_.push_back(name_ + " after " + std::string(context.method()) + ": " + how(end));
  }

 private:
  std::string name_;
  Log& log_;
};

class Thrower final : public ServerInterceptor, public ClientInterceptor {
 public:
  Result<void> before(Context& context) override { return refuse(context.method()); }
  Result<void> before(OutgoingCall& call) override { return refuse(call.method); }

 private:
  static Result<void> refuse(std::string_view method) {
    if (method == "shop.add") throw std::runtime_error("no room in the log");
    if (method == "shop.nothing") throw 7;
    return {};
  }
};

class AfterThrower final : public ServerInterceptor, public ClientInterceptor {
 public:
  void after(Context& context, const CallEnd&) override { fail_to_log(context.method()); }
  void after(std::string_view method, const CallEnd&) override { fail_to_log(method); }

 private:
  static void fail_to_log(std::string_view method) {
    if (method == "shop.add") throw 7;
    throw std::runtime_error("no room in the log");
  }
};

class ClientLogger final : public ClientInterceptor {
 public:
  explicit ClientLogger(Log& log) : log_(log) {}
  std::optional<TraceContext> trace;
  Result<void> before(OutgoingCall& call) override {
    log_.push_back("client before " + std::string(call.method));
    call.trace = trace;
    if (call.method == "shop.nothing") return fail(Errc::denied, "the client does not call that");
    return {};
  }
  void after(std::string_view method, const CallEnd& end) override {
    log_.push_back("client after " + std::string(method) + ": " + how(end));
  }

 private:
  Log& log_;
};

class Interceptors : public testing_support::RpcTest {
 protected:
  Log log;
  std::shared_ptr<ServerLogger> outer = std::make_shared<ServerLogger>("outer", log);
  std::shared_ptr<ServerLogger> inner = std::make_shared<ServerLogger>("inner", log);
  void start(ServerOptions options = {}) {
    serve<shop::add, shop::nothing, shop::divide_later, shop::wait_for_ever, shop::throws, shop::sized,
          seen::trace, seen::trace_later, seen::trace_of_stream>(std::move(options));
    shop::waits = {};
  }
  ServerOptions logged() const {
    ServerOptions options;
    options.interceptors = {outer, inner};
    return options;
  }
  const MethodReport& of(const std::vector<MethodReport>& all, std::string_view name) const {
    for (const MethodReport& one : all)
      if (one.name == name) return one;
    throw std::runtime_error("no report of " + std::string(name));
  }
};

TEST_P(Interceptors, that_throw_refuse_the_call) {
  const auto thrower = std::make_shared<Thrower>();
  ServerOptions options;
  options.interceptors = {outer, thrower, inner};
  start(std::move(options));
  const auto expect_refusals = [](Client& client) -> asio::awaitable<void> {
    const auto sum = co_await client.call<shop::add>(2, 3);
    EXPECT_EQ(sum.error().code, Errc::failed);
    EXPECT_EQ(sum.error().what, "an interceptor threw: no room in the log");
    EXPECT_EQ((co_await client.call<shop::nothing>()).error().what,
              "an interceptor threw what is no std::exception");
    EXPECT_TRUE(co_await client.call<shop::sized>(std::uint32_t{3}));
  };
  with_client(address, expect_refusals);
  EXPECT_EQ(log.size(), 8u) << "the outer one hears of all three calls, the inner one of the last";
  log.clear();
  ConnectOptions connecting = connect_options();
  connecting.interceptors = {thrower};
  run([&]() -> asio::awaitable<void> {
    auto client = co_await connect(address, connecting);
    EXPECT_TRUE(client);
    if (client) co_await expect_refusals(*client);
  });
  EXPECT_EQ(log.size(), 4u) << "two of the calls were not sent";
}

TEST_P(Interceptors, that_throw_after_a_call_change_nothing_of_it_and_the_others_hear_of_it) {
  const auto thrower = std::make_shared<AfterThrower>();
  inner->refuses = "shop.nothing";
  ServerOptions options;
  options.interceptors = {outer, thrower, inner};
  start(std::move(options));
  ConnectOptions connecting = connect_options();
  connecting.interceptors = {thrower};
  run([&]() -> asio::awaitable<void> {
    auto client = co_await connect(address, connecting);
    EXPECT_TRUE(client);
    if (!client) co_return;
    EXPECT_EQ((co_await client->call<shop::add>(2, 3)).value_or(0), 5);
    EXPECT_EQ((co_await client->call<shop::divide_later>(6, 3)).value_or(0), 2);
    EXPECT_EQ((co_await client->call<shop::throws>("it")).error().code, Errc::failed);
    EXPECT_EQ((co_await client->call<shop::nothing>()).error().code, Errc::denied);
  });
  EXPECT_EQ(
      std::ranges::count_if(log, [](const std::string& line) { return line.starts_with("outer after"); }), 4);
}

TEST_P(Interceptors, servers_chain_is_asked_in_order_and_told_in_reverse) {
  start(logged());
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<shop::add>(1, 2)).value_or(0), 3);
    EXPECT_FALSE(co_await client.call<shop::divide_later>(1, 0));
    EXPECT_FALSE(co_await client.call<shop::throws>("x"));
  });
  EXPECT_EQ(log, (Log{"outer before shop.add", "inner before shop.add", "inner after shop.add: well",
                      "outer after shop.add: well", "outer before shop.divide_later",
                      "inner before shop.divide_later", "inner after shop.divide_later: bad_arguments",
                      "outer after shop.divide_later: bad_arguments", "outer before shop.throws",
                      "inner before shop.throws", "inner after shop.throws: failed",
                      "outer after shop.throws: failed"}));
}

TEST_P(Interceptors, a_refusal_is_the_callers_answer_and_the_function_does_not_run) {
  inner->refuses = "shop.wait_for_ever";
  start(logged());
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto refused = co_await client.call<shop::wait_for_ever>();
    EXPECT_EQ(refused.error().code, Errc::denied);
    EXPECT_EQ(refused.error().what, "not today");
  });
  EXPECT_EQ(shop::waits.started, 0);
  EXPECT_EQ(log, (Log{"outer before shop.wait_for_ever", "inner before shop.wait_for_ever",
                      "outer after shop.wait_for_ever: denied"}));
}

class OnEnd final : public ServerInterceptor {
 public:
  std::function<void()> act;
  void after(Context&, const CallEnd&) override {
    if (act) act();
  }
};

TEST_P(Interceptors, may_drain_the_server_at_the_end_of_a_call) {
  const auto on_end = std::make_shared<OnEnd>();
  ServerOptions options;
  options.interceptors = {on_end};
  for (const std::uint32_t bytes : {10u, 200'000u}) {
    start(options);
    on_end->act = [this] { server->drain(); };
    with_client(address, [&](Client& client) -> asio::awaitable<void> {
      const auto last = co_await client.call<shop::sized>(bytes);
      EXPECT_EQ(last.value_or("").size(), bytes) << (last ? "" : last.error().what);
    });
    run_until([this] { return server->open() == 0; });
  }
}

TEST_P(Interceptors, may_drain_the_server_at_the_end_of_a_call_that_failed) {
  const auto on_end = std::make_shared<OnEnd>();
  ServerOptions options;
  options.interceptors = {on_end};
  start(options);
  on_end->act = [this] { server->drain(); };
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<shop::throws>("x")).error().code, Errc::failed);
  });
  run_until([this] { return server->open() == 0; });
}

TEST_P(Interceptors, clients_chain_sees_calls_by_name_and_may_refuse) {
  start();
  run([this]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    options.interceptors = {std::make_shared<ClientLogger>(log)};
    auto client = co_await connect(address, options);
    EXPECT_EQ((co_await client->call<shop::add>(1, 2)).value_or(0), 3);
    EXPECT_EQ((co_await client->call<shop::nothing>()).error().code, Errc::denied);
    EXPECT_EQ((co_await client->call_by_name<int>("shop.sell")).error().code, Errc::unknown_method);
  });
  EXPECT_EQ(log, (Log{"client before shop.add", "client after shop.add: well", "client before shop.nothing",
                      "client before shop.sell", "client after shop.sell: unknown_method"}));
}

TEST_P(Interceptors, trace_context_reaches_the_function) {
  start();
  const std::string parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const auto trace = parse_traceparent(parent);
  ASSERT_TRUE(trace);
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<seen::trace>()).value_or("?"), "none");
    CallOptions options;
    options.trace = &*trace;
    EXPECT_EQ((co_await client.call<seen::trace>(options)).value_or("?"), parent);
    EXPECT_EQ((co_await client.call<seen::trace_later>(options, "at ")).value_or("?"), "at " + parent);
    auto stream = client.stream<seen::trace_of_stream>(options);
    EXPECT_EQ((co_await stream.finish()).value_or("?"), parent);
  });
  run([&]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    const auto logger = std::make_shared<ClientLogger>(log);
    logger->trace = trace;
    options.interceptors = {logger};
    auto client = co_await connect(address, options);
    EXPECT_EQ((co_await client->call<seen::trace>()).value_or("?"), parent);
  });
}

TEST_P(Interceptors, a_server_counts_its_calls_if_it_is_told_to) {
  ServerOptions options;
  options.stats = true;
  start(options);
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(co_await client.call<shop::add>(i, 1));
    EXPECT_FALSE(co_await client.call<shop::divide_later>(1, 0));
    asio::co_spawn(io, client.call<shop::wait_for_ever>(),
                   [](const std::exception_ptr&, const Result<void>&) {});
    while (shop::waits.started == 0) co_await asio::post(io, asio::use_awaitable);
    const auto all = co_await client.call_by_name<std::vector<MethodReport>>(stats_method);
    EXPECT_TRUE(all) << all.error().what;
    const MethodReport& add = of(*all, "shop.add");
    EXPECT_EQ(add.calls, 5u);
    EXPECT_EQ(add.failures, 0u);
    EXPECT_EQ(add.bytes_in, 5u * 3);  // an array of two small integers
    EXPECT_EQ(add.bytes_out, 5u * 1);
    EXPECT_GT(add.total_ns, 0u);
    EXPECT_EQ(of(*all, "shop.divide_later").failures, 1u);
    EXPECT_EQ(of(*all, "shop.wait_for_ever").in_flight, 1u);
    EXPECT_EQ(of(*all, "shop.wait_for_ever").calls, 0u);
  });
  run_until([this] { return of(server->method_stats(), "shop.wait_for_ever").in_flight == 0; });
  EXPECT_NE(prometheus_text(server->method_stats()).find("weir_rpc_calls_total{method=\"shop.add\"} 5\n"),
            std::string::npos);
}

TEST_P(Interceptors, a_server_that_does_not_count_says_so) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call_by_name<std::vector<MethodReport>>(stats_method)).error().code,
              Errc::unknown_method);
  });
  EXPECT_TRUE(server->method_stats().empty());
}

INSTANTIATE_TEST_SUITE_P(Over, Interceptors, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
