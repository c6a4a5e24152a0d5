// Streams over every transport: values in both directions, backpressure, and every kind of end.
#include <gtest/gtest.h>

#include <asio/experimental/awaitable_operators.hpp>

#include "rpc/server/reflection.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace feed {

using weir::rpc::Context;
using weir::rpc::Reader;
using weir::rpc::Result;
using weir::rpc::Writer;

struct Tick {
  std::uint32_t number = 0;
  std::string text;
};

struct Seen {
  std::uint32_t written = 0;
  std::int64_t summed = 0;
  int begun = 0;  // calls of total so far
  int ended = 0;
  std::vector<weir::rpc::Errc> causes;
};
Seen seen;

// Records every way the function can end: a cancelled one leaves by an exception.
struct CountedEnd {
  ~CountedEnd() { ++seen.ended; }
};

asio::awaitable<void> ticks(std::uint32_t count, std::uint32_t text_bytes, Writer<Tick> out) {
  const CountedEnd end;
  Tick tick;
  tick.text.assign(text_bytes, 't');
  for (; tick.number < count; ++tick.number) {
    const Result<void> written = co_await out.write(tick);
    if (!written) {
      seen.causes.push_back(written.error().code);
      break;
    }
    ++seen.written;
  }
}

asio::awaitable<std::int64_t> total(Reader<std::int32_t> in) {
  std::int64_t sum = 0;
  ++seen.begun;
  const CountedEnd end;
  for (;;) {
    const Result<std::int32_t> number = co_await in.read();
    if (!number) {
      seen.causes.push_back(number.error().code);
      break;
    }
    seen.summed = sum += *number;
  }
  co_return sum;
}

asio::awaitable<std::uint32_t> shout(std::string suffix, Reader<std::string> in, Writer<std::string> out,
                                     Context&) {
  std::uint32_t count = 0;
  while (auto text = co_await in.read()) {
    const std::string answer = *text + suffix;
    if (!co_await out.write(answer)) break;
    ++count;
  }
  co_return count;
}

asio::awaitable<Result<std::int32_t>> breaks(std::uint32_t after, Writer<std::uint32_t> out) {
  for (std::uint32_t i = 0; i < after; ++i)
    if (!co_await out.write(i)) break;
  co_return weir::rpc::fail(weir::rpc::Errc::denied, "enough");
}

asio::awaitable<std::int32_t> first(Reader<std::int32_t> in) {
  const auto number = co_await in.read();
  co_return number.value_or(-1);
}

}  // namespace feed

namespace weir::rpc {
namespace {

using namespace asio::experimental::awaitable_operators;

class Streams : public testing_support::RpcTest {
 protected:
  void start(const ServerLimits& limits = {}) {
    serve<feed::ticks, feed::total, feed::shout, feed::breaks, feed::first, shop::divide_later, shop::add>(
        limited(limits));
    feed::seen = {};
  }
  static asio::awaitable<void> turn() {
    co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  }
};

TEST_P(Streams, server_stream_gives_every_value_in_order_then_the_end) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto ticks = client.stream<feed::ticks>(2000u, 300u);
    std::uint32_t next = 0;
    Result<feed::Tick> tick;
    while ((tick = co_await ticks.read())) {
      EXPECT_EQ(tick->number, next++);
      EXPECT_EQ(tick->text.size(), 300u);
    }
    EXPECT_EQ(tick.error().code, Errc::end_of_stream);
    EXPECT_EQ(next, 2000u);
    EXPECT_TRUE(co_await ticks.finish());
    EXPECT_TRUE(ticks.ended());
    EXPECT_EQ(client.in_flight(), 0u);
  });
}

TEST_P(Streams, client_stream_is_summed_up_by_the_server) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto total = client.stream<feed::total>();
    for (std::int32_t i = 1; i <= 5000; ++i) {
      const auto written = co_await total.write(i);
      EXPECT_TRUE(written) << written.error().what;
    }
    EXPECT_EQ((co_await total.finish()).value_or(0), 5000 * 5001 / 2);
    EXPECT_EQ((co_await total.write(1)).error().code, Errc::end_of_stream);
  });
  EXPECT_EQ(feed::seen.causes, std::vector{Errc::end_of_stream});
}

TEST_P(Streams, integers_that_do_not_fit_are_bad_arguments_of_the_caller) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto total = client.stream<feed::total>();
    const auto refused = co_await total.write(5'000'000'000);
    EXPECT_EQ(refused.error().code, Errc::bad_arguments);
    EXPECT_EQ(refused.error().what,
              "an item of the stream is 5000000000, which is no int32_t: that is -2147483648 to 2147483647; "
              "nothing was sent");
    EXPECT_TRUE(co_await total.write(std::int64_t{7}));  // the stream continues
    EXPECT_EQ((co_await total.finish()).value_or(0), 7);
    auto ticks = client.stream<feed::ticks>(-1, 0);
    const auto tick = co_await ticks.read();
    EXPECT_EQ(tick.error().code, Errc::bad_arguments);
    EXPECT_EQ((co_await ticks.finish()).error().code, Errc::bad_arguments);
  });
}

TEST_P(Streams, both_directions_at_once_and_half_close) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto shout = client.stream<feed::shout>("!");
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(co_await shout.write("a" + std::to_string(i)));
      EXPECT_EQ((co_await shout.read()).value_or(""), "a" + std::to_string(i) + "!");
    }
    EXPECT_TRUE(co_await shout.write("last"));
    shout.close_write();
    EXPECT_EQ((co_await shout.write("later")).error().code, Errc::closed);
    EXPECT_EQ((co_await shout.read()).value_or(""), "last!");
    EXPECT_EQ((co_await shout.read()).error().code, Errc::end_of_stream);
    EXPECT_EQ((co_await shout.finish()).value_or(0), 4u);
  });
}

TEST_P(Streams, a_reader_that_does_not_read_stops_the_writer) {
  start();
  static constexpr std::uint32_t item = 1000;
  ConnectionLimits client_limits;
  client_limits.stream_window_bytes = 100'000;
  with_client(
      address,
      [](Client& client) -> asio::awaitable<void> {
        auto ticks = client.stream<feed::ticks>(100'000u, item);
        std::uint32_t before = 1;
        // Other calls get through; if the writer made no progress during many of them, it is waiting for us.
        for (int still = 0; still < 50;) {
          EXPECT_EQ((co_await client.call<shop::add>(1, 1)).value_or(0), 2);
          still = feed::seen.written == before ? still + 1 : 0;
          before = feed::seen.written;
        }
        EXPECT_LT(before * item, 110'000u);
        EXPECT_GT(before * item, 80'000u);
        for (std::uint32_t i = 0; i < 500; ++i) EXPECT_EQ((co_await ticks.read()).value().number, i);
        EXPECT_GE(feed::seen.written, 500u);
        EXPECT_LT(feed::seen.written * item, 500 * item + 110'000u);
      },
      client_limits);
  run_until([] { return feed::seen.ended == 1; });
}

TEST_P(Streams, a_client_that_writes_too_fast_waits) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto total = client.stream<feed::total>();
    const auto write_for_ever = [&]() -> asio::awaitable<void> {
      for (std::int32_t i = 0; i < 100'000; ++i)
        if (!co_await total.write(1)) co_return;
    };
    co_await write_for_ever();
    EXPECT_EQ((co_await total.finish()).value_or(0), 100'000);
  });
}

TEST_P(Streams, the_functions_error_comes_after_its_values) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto broken = client.stream<feed::breaks>(3u);
    for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ((co_await broken.read()).value_or(99), i);
    const auto end = co_await broken.read();
    EXPECT_EQ(end.error().code, Errc::denied);
    EXPECT_EQ(end.error().what, "enough");
    EXPECT_EQ((co_await broken.finish()).error().code, Errc::denied);
  });
}

TEST_P(Streams, finish_drops_what_was_not_read) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto ticks = client.stream<feed::ticks>(3000u, 1000u);
    EXPECT_TRUE(co_await ticks.finish());
    EXPECT_EQ(feed::seen.written, 3000u);
  });
}

TEST_P(Streams, a_function_that_returns_early_ends_the_writers_wait) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto first = client.stream<feed::first>();
    Result<void> written;
    while (written) written = co_await first.write(7);
    EXPECT_EQ(written.error().code, Errc::end_of_stream);
    EXPECT_EQ((co_await first.finish()).value_or(0), 7);
  });
}

TEST_P(Streams, cancelling_reaches_the_function_and_ends_the_reader) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto total = client.stream<feed::total>();
    EXPECT_TRUE(co_await total.write(1));
    while (feed::seen.summed == 0) co_await turn();
    total.cancel();
    EXPECT_EQ((co_await total.finish()).error().code, Errc::cancelled);
  });
  run_until([] { return feed::seen.ended == 1; });
  EXPECT_EQ(feed::seen.causes, std::vector{Errc::cancelled});
}

TEST_P(Streams, forgetting_a_stream_cancels_it) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    {
      auto forgotten = client.stream<feed::ticks>(1'000'000u, 1000u);
      EXPECT_TRUE(co_await forgotten.read());
    }
    EXPECT_EQ(client.in_flight(), 0u);
    while (feed::seen.ended == 0) co_await turn();
  });
}

TEST_P(Streams, deadline_ends_a_stream_at_both_ends) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    CallOptions options;
    // Try longer deadlines until one is not over before the function begins.
    for (options.timeout = std::chrono::milliseconds(30); feed::seen.begun == 0; options.timeout *= 2) {
      auto shout = client.stream<feed::shout>(options, "");
      auto total = client.stream<feed::total>(options);
      EXPECT_EQ((co_await shout.read()).error().code, Errc::deadline_exceeded);
      EXPECT_EQ((co_await shout.finish()).error().code, Errc::deadline_exceeded);
      Result<void> written;
      while ((written = co_await total.write(1))) co_await turn();
      EXPECT_EQ(written.error().code, Errc::deadline_exceeded);
    }
  });
  run_until([] { return feed::seen.ended == feed::seen.begun; });
  // Whichever the server notices first, its own clock or the client's message.
  for (const Errc cause : feed::seen.causes) EXPECT_NE(cause, Errc::end_of_stream);
}

TEST_P(Streams, a_waiting_read_can_be_cancelled_and_repeated) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto shout = client.stream<feed::shout>("?");
    asio::steady_timer soon(co_await asio::this_coro::executor, std::chrono::milliseconds(5));
    const auto either = co_await (shout.read() || soon.async_wait(asio::use_awaitable));
    EXPECT_EQ(either.index(), 1u);
    EXPECT_TRUE(co_await shout.write("still here"));
    EXPECT_EQ((co_await shout.read()).value_or(""), "still here?");
  });
}

TEST_P(Streams, the_servers_death_ends_what_waits) {
  start();
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    auto shout = client.stream<feed::shout>("");
    EXPECT_TRUE(co_await shout.write("a"));
    EXPECT_TRUE(co_await shout.read());
    const auto kill = [&]() -> asio::awaitable<void> {
      co_await turn();
      server->stop();
    };
    asio::co_spawn(co_await asio::this_coro::executor, kill(), [](const std::exception_ptr&) {});
    EXPECT_EQ((co_await shout.read()).error().code, Errc::connection_lost);
    EXPECT_EQ((co_await shout.write("b")).error().code, Errc::connection_lost);
    EXPECT_EQ((co_await shout.finish()).error().code, Errc::connection_lost);
  });
}

TEST_P(Streams, the_clients_death_ends_the_function) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto total = client.stream<feed::total>();
    EXPECT_TRUE(co_await total.write(1));
    while (feed::seen.summed == 0) co_await turn();
    client.close();
    EXPECT_EQ((co_await total.finish()).error().code, Errc::closed);
    EXPECT_EQ((co_await client.stream<feed::total>().finish()).error().code, Errc::closed);
  });
  run_until([this] { return feed::seen.ended == 1 && server->open() == 0; });
  EXPECT_EQ(feed::seen.causes, std::vector{Errc::cancelled});
}

TEST_P(Streams, calls_and_streams_are_not_mixed_up) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call_by_name<std::int64_t>("feed.total")).error().code, Errc::bad_arguments);
    const Bytes nothing;
    CallOptions options;
    auto wrong = client.stream_encoded("shop.add", options, nothing.span());
    const auto refused = co_await wrong.finish();
    EXPECT_EQ(refused.error().code, Errc::bad_arguments);
    EXPECT_EQ(refused.error().what, "shop.add is no stream: call it, do not open it");
  });
}

TEST_P(Streams, an_item_of_another_type_is_the_callers_error) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    Bytes nothing, text;
    MessagePack::write(nothing, std::tuple<>());
    MessagePack::write(text, std::string_view("no number"));
    CallOptions options;
    auto total = client.stream_encoded("feed.total", options, nothing.span());
    EXPECT_TRUE(co_await total.write(text.span()));
    const auto refused = co_await total.finish();
    EXPECT_EQ(refused.error().code, Errc::bad_arguments);
    EXPECT_EQ(refused.error().what, "an item is not of the stream's type: expected an integer, found text");
  });
}

TEST_P(Streams, items_beyond_the_limit_are_refused_before_they_are_sent) {
  start();
  ConnectionLimits limits;
  limits.request.body_bytes = 1000;
  with_client(
      address,
      [](Client& client) -> asio::awaitable<void> {
        auto shout = client.stream<feed::shout>("");
        const std::string big(1001, 'x');
        EXPECT_EQ((co_await shout.write(big)).error().code, Errc::too_large);
        EXPECT_TRUE(co_await shout.write("small"));
        EXPECT_EQ((co_await shout.read()).value_or(""), "small");
      },
      limits);
}

TEST_P(Streams, too_many_streams_are_refused) {
  ServerLimits limits;
  limits.max_streams = 2;
  start(limits);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto one = client.stream<feed::total>();
    auto two = client.stream<feed::total>();
    EXPECT_EQ((co_await client.stream<feed::total>().finish()).error().code, Errc::overloaded);
    EXPECT_EQ((co_await one.finish()).value_or(-1), 0);
    EXPECT_EQ((co_await client.stream<feed::total>().finish()).value_or(-1), 0);
  });
}

TEST_P(Streams, their_number_is_not_bounded_by_that_of_calls) {
  ServerLimits limits;
  limits.max_in_flight = 2;
  limits.max_streams = 8;
  start(limits);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    std::vector<StreamOf<feed::total>> all;
    for (int i = 0; i < 8; ++i) all.push_back(client.stream<feed::total>());
    EXPECT_EQ(co_await client.call<shop::divide_later>(6, 3), 2);
    for (auto& one : all) EXPECT_EQ((co_await one.finish()).value_or(-1), 0);
  });
}

TEST_P(Streams, streams_say_what_they_are) {
  start();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto methods = co_await client.call_by_name<std::vector<MethodInfo>>(methods_method);
    if (!methods) throw std::runtime_error(methods.error().what);
    std::map<std::string, std::string> by_name;
    for (const MethodInfo& method : *methods) by_name[method.name] = method.schema;
    EXPECT_EQ(by_name.at("feed.ticks"), "(u32, u32) -> stream Tick{number: u32, text: str}");
    EXPECT_EQ(by_name.at("feed.total"), "(stream i32) -> i64");
    EXPECT_EQ(by_name.at("feed.shout"), "(str, stream str) -> stream str, u32");
  });
}

INSTANTIATE_TEST_SUITE_P(Over, Streams, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
