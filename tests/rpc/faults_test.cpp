// Faults over every transport: every call ends, with a typed error, and nothing
// grows without bound.
#include <gtest/gtest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/experimental/awaitable_operators.hpp>

#include "tests/rpc/rpc_fixture.hpp"

namespace held {

int started = 0;
bool released = false;

// Ends when the test opens it, not after a time.
asio::awaitable<std::int32_t> until_released() {
  ++started;
  while (!released) co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  co_return 42;
}

}  // namespace held

namespace weir::rpc {
namespace {

using namespace asio::experimental::awaitable_operators;
using testing_support::RpcTest;

class Faults : public RpcTest {
 protected:
  void start(const ServerLimits& limits = {}) { start(limited(limits)); }
  void start(ServerOptions options) {
    serve<shop::echo, shop::sized, shop::nothing, shop::wait_for_ever, shop::reflect, held::until_released>(
        std::move(options));
    shop::waits = {};
    held::started = 0;
    held::released = false;
  }
};

TEST_P(Faults, deadline_ends_the_call_and_cancels_the_function) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    CallOptions options;
    // Try longer deadlines until one is not over before the function begins.
    for (options.timeout = std::chrono::milliseconds(20); shop::waits.started == 0; options.timeout *= 2)
      EXPECT_EQ((co_await client.call<shop::wait_for_ever>(options)).error().code, Errc::deadline_exceeded);
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
  run_until([] { return shop::waits.cancelled == shop::waits.started; });
}

TEST_P(Faults, a_time_out_beyond_the_end_of_time_is_for_ever) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    CallOptions options;
    for (const std::int64_t us : {INT64_MAX, INT64_MAX / 1000, std::int64_t{1} << 60}) {
      options.timeout = std::chrono::microseconds(us);
      const auto answer = co_await client.call<shop::echo>(options, "here");
      EXPECT_EQ(answer.value_or("?"), "here") << us;
      EXPECT_TRUE(co_await client.ping(options.timeout)) << us;
    }
  });
}

TEST_P(Faults, a_connection_may_take_as_long_as_can_be_said) {
  start();
  run([&]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    options.connect_timeout = std::chrono::milliseconds::max();
    const auto client = co_await connect(address, options);
    if (!client) ADD_FAILURE() << client.error().what;
  });
}

TEST_P(Faults, cancelling_the_call_reaches_the_function) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    asio::cancellation_signal signal;
    Errc code{};
    const auto waiting = [&]() -> asio::awaitable<void> {
      const auto result = co_await client.call<shop::wait_for_ever>();
      code = result.error().code;
    };
    const auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, waiting(),
                   asio::bind_cancellation_slot(signal.slot(), [](const std::exception_ptr&) {}));
    while (shop::waits.started == 0) co_await asio::post(executor, asio::use_awaitable);
    signal.emit(asio::cancellation_type::terminal);
    while (shop::waits.cancelled == 0) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(code, Errc::cancelled);
    EXPECT_EQ(client.in_flight(), 0u);
  });
}

TEST_P(Faults, a_call_that_nobody_awaits_is_cancelled) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    {
      const auto forgotten = client.call<shop::wait_for_ever>();
    }
    EXPECT_EQ(client.in_flight(), 0u);
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
}

TEST_P(Faults, pending_calls_end_when_the_server_stops) {
  start();
  int lost = 0;
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto waiting = [&]() -> asio::awaitable<void> {
      const auto result = co_await client.call<shop::wait_for_ever>();
      lost += result.error().code == Errc::connection_lost ? 1 : 0;
    };
    for (int i = 0; i < 10; ++i) asio::co_spawn(executor, waiting(), [](const std::exception_ptr&) {});
    while (shop::waits.started < 10) co_await asio::post(executor, asio::use_awaitable);
    server->stop();
    while (lost < 10) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_FALSE(client.is_open());
    EXPECT_EQ((co_await client.call<shop::nothing>()).error().code, Errc::connection_lost);
  });
  run_until([] { return shop::waits.cancelled == 10; });
}

TEST_P(Faults, functions_are_cancelled_when_the_client_goes) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    asio::co_spawn(executor, client.call<shop::wait_for_ever>(),
                   [](const std::exception_ptr&, Result<void>) {});
    while (shop::waits.started == 0) co_await asio::post(executor, asio::use_awaitable);
  });
  run_until([this] { return shop::waits.cancelled == 1 && server->open() == 0; });
}

TEST_P(Faults, draining_answers_what_is_under_way) {
  start();
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    Result<std::int32_t> waited;
    bool ended = false;
    const auto waiting = [&]() -> asio::awaitable<void> {
      waited = co_await client.call<held::until_released>();
      ended = true;
    };
    asio::co_spawn(executor, waiting(), [](const std::exception_ptr&) {});
    while (held::started == 0) co_await asio::post(executor, asio::use_awaitable);
    server->drain();
    while (!client.draining()) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_FALSE(ended);
    const auto refused = co_await client.call<shop::nothing>();
    EXPECT_EQ(refused.error().code, Errc::draining);
    EXPECT_TRUE(did_not_run(refused.error().code));
    held::released = true;
    while (!ended) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_EQ(waited.value_or(0), 42);
    while (client.is_open()) co_await asio::post(executor, asio::use_awaitable);
  });
  run_until([this] { return server->open() == 0; });
}

TEST_P(Faults, oversize_is_refused_before_it_is_sent) {
  start();
  ConnectionLimits limits;
  limits.request.body_bytes = 1000;
  limits.request.attachment_bytes = 1000;
  with_client(
      address,
      [](Client& client) -> asio::awaitable<void> {
        const std::string big(1001, 'x');
        EXPECT_EQ((co_await client.call<shop::echo>(big)).error().code, Errc::too_large);
        CallOptions options;
        options.attachment = as_bytes(big);
        EXPECT_EQ((co_await client.call<shop::reflect>(options)).error().code, Errc::too_large);
        EXPECT_EQ((co_await client.call<shop::echo>("small")).value_or(""), "small");
      },
      limits);
}

// The limit may be either end's, and the body may exceed it only after decompression.
TEST_P(Faults, oversize_that_was_sent_is_the_fault_of_that_call_only_though_it_ends_the_connection) {
  for (const bool at_server : {true, false})
    for (const Compression with : {Compression::none, Compression::zstd}) {
      SCOPED_TRACE(std::string(at_server ? "arguments, " : "a result, ") + std::string(name_of(with)));
      ServerOptions options;
      options.compression.with = with;
      if (at_server) options.limits.frame.body_bytes = options.limits.reply.body_bytes = 1000;
      start(std::move(options));
      run([&]() -> asio::awaitable<void> {
        ConnectOptions chosen = connect_options();
        chosen.compression = options.compression;
        if (!at_server) chosen.limits.frame.body_bytes = 1000;
        auto client = co_await connect(address, chosen);
        if (!client) throw std::runtime_error(client.error().what);
        EXPECT_TRUE(co_await client->call<shop::nothing>());  // now both know what the other accepts
        std::vector<Error> others;
        const auto other = [&](const std::exception_ptr&, const Result<void>& result) {
          others.push_back(result ? Error() : result.error());
        };
        asio::co_spawn(io, client->call<shop::wait_for_ever>(), other);
        while (shop::waits.started == 0) co_await asio::post(io, asio::use_awaitable);
        const std::string big(2000, 'x');
        Result<std::string> refused;
        if (at_server)
          refused = co_await client->call<shop::echo>(big);
        else
          refused = co_await client->call<shop::sized>(2000u);
        EXPECT_FALSE(refused);
        // Over TLS the server's last frame is lost if an earlier write is still in progress.
        const bool told = !over("tls") || refused.error().code != Errc::connection_lost;
        if (told) {
          EXPECT_EQ(refused.error().code, Errc::too_large) << refused.error().what;
        }
        EXPECT_FALSE(client->is_open());
        while (others.empty()) co_await asio::post(io, asio::use_awaitable);
        const auto later = co_await client->call<shop::nothing>();
        EXPECT_FALSE(later);
        others.push_back(later.error());
        const std::string why = at_server ? "the server ended the connection: the peer sends a"
                                          : "this end ended the connection: the peer sends a";
        for (const Error& one : others) {
          EXPECT_EQ(one.code, Errc::connection_lost);
          if (told) {
            EXPECT_TRUE(one.what.starts_with(why)) << one.what;
          }
        }
      });
    }
}

TEST_P(Faults, results_beyond_the_limits_are_an_error_of_that_call_only) {
  ServerLimits limits;
  limits.reply.body_bytes = 1000;
  start(limits);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<shop::sized>(2000u)).error().code, Errc::too_large);
    EXPECT_EQ((co_await client.call<shop::sized>(5u)).value_or(""), "xxxxx");
  });
}

TEST_P(Faults, too_many_calls_are_refused) {
  start();
  ConnectionLimits limits;
  limits.max_in_flight = 2;
  with_client(
      address,
      [](Client& client) -> asio::awaitable<void> {
        const auto executor = co_await asio::this_coro::executor;
        for (int i = 0; i < 2; ++i)
          asio::co_spawn(executor, client.call<shop::wait_for_ever>(),
                         [](const std::exception_ptr&, Result<void>) {});
        EXPECT_EQ((co_await client.call<shop::nothing>()).error().code, Errc::overloaded);
      },
      limits);
}

TEST_P(Faults, a_server_that_is_full_stops_reading_not_answering) {
  ServerLimits limits;
  limits.max_in_flight = 4;
  start(limits);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    int ended = 0;
    CallOptions options;
    options.timeout = std::chrono::milliseconds(50);
    const auto waiting = [&]() -> asio::awaitable<void> {
      co_await client.call<shop::wait_for_ever>(options);
      ++ended;
    };
    for (int i = 0; i < 6; ++i) asio::co_spawn(executor, waiting(), [](const std::exception_ptr&) {});
    while (ended < 6) co_await asio::post(executor, asio::use_awaitable);
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
}

TEST_P(Faults, nobody_there) {
  start();
  server.reset();
  run([this]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    const auto client = co_await connect(address, options);
    EXPECT_FALSE(client);
    EXPECT_EQ(client.error().code, Errc::unreachable) << client.error().what;
  });
}

class TlsFaults : public Faults {};
TEST_P(TlsFaults, strangers_certificates_are_refused) {
  start();
  run([this]() -> asio::awaitable<void> {
    for (const char* name : {"stranger", ""})
      for (const std::size_t bytes : {1u, 8u << 20}) {
        ConnectOptions options = connect_options();
        options.transport.tls = testing_support::tls_of(name);
        options.limits.request.body_bytes = 64 << 20;
        auto client = co_await connect(address, options);
        // With TLS 1.3 the client learns of it at its first read, after it has written.
        const std::string text(bytes, 'x');
        Result<std::string> result;
        if (client)
          result = co_await client->call<shop::echo>(text);
        else
          result = std::unexpected(client.error());
        EXPECT_FALSE(result) << name;
        if (!result) {
          EXPECT_EQ(result.error().code, Errc::tls) << name << ' ' << bytes << ": " << result.error().what;
        }
      }
    ConnectOptions options = connect_options();
    options.transport.tls = testing_support::tls_of("client", "other-ca");
    const auto refused = co_await connect(address, options);
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::tls);
    options.transport.tls = testing_support::tls_of("client");
    options.transport.tls.server_name = "somebody-else";
    const auto misnamed = co_await connect(address, options);
    EXPECT_FALSE(misnamed);
  });
}

INSTANTIATE_TEST_SUITE_P(Over, TlsFaults, testing::Values("tls", "rdma+tls"),
                         testing_support::transport_name);
INSTANTIATE_TEST_SUITE_P(Over, Faults, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
