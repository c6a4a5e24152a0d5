// Large bodies over every transport: the bytes that arrive, calls that end while their bodies are half sent,
// and the memory of the bodies.
#include <gtest/gtest.h>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <vector>

#include "tests/rpc/rpc_fixture.hpp"

namespace large_bodies {

asio::awaitable<std::string> echo_later(std::string text) { co_return text; }

// Views of the arguments, which end with the call.
std::string_view view_of(const std::string& text) { return text; }
asio::awaitable<std::string_view> view_of_later(const std::string& text) { co_return text; }

asio::awaitable<void> echo_all(weir::rpc::Reader<std::string> in, weir::rpc::Writer<std::string> out) {
  while (auto text = co_await in.read())
    if (const auto written = co_await out.write(*text); !written) co_return;
}

}  // namespace large_bodies

namespace weir::rpc {
namespace {

std::string letters(std::size_t bytes, std::size_t salt = 0) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i + salt) * 31 + i / 251);
  return text;
}

class LargeBodies : public testing_support::RpcTest {
 protected:
  void serve(std::uint32_t body_bytes = 64 << 20) {
    ServerOptions options;
    options.limits.frame.body_bytes = options.limits.reply.body_bytes = body_bytes;
    limits.frame.body_bytes = limits.request.body_bytes = body_bytes;
    server = make_server(std::move(options));
    server->add<shop::echo, shop::length, large_bodies::echo_later, large_bodies::echo_all,
                large_bodies::view_of, large_bodies::view_of_later>();
    address = listen(*server);
  }
  void with_client(const std::string& where, std::function<asio::awaitable<void>(Client&)> body) {
    RpcTest::with_client(where, std::move(body), limits);
  }
  // Each of these calls sends far more than a transport accepts at once.
  asio::awaitable<void> start(Client& client, std::string_view text, asio::cancellation_signal& signal) {
    asio::co_spawn(io, client.call<shop::length>(text),
                   asio::bind_cancellation_slot(
                       signal.slot(), [this](const std::exception_ptr&, Result<std::int64_t> got) {
                         ends.push_back(got ? std::nullopt : std::optional(got.error().code));
                       }));
    co_return;
  }

  ConnectionLimits limits;
  std::unique_ptr<Server> server;
  std::string address;
  std::vector<std::optional<Errc>> ends;  // nothing: answered
};

TEST_P(LargeBodies, of_all_sizes_come_as_they_went) {
  serve();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const std::size_t bytes :
         {65'000, 65'470, 65'530, 65'536, 65'540, 100'000, 262'144, 1'048'576, 3'000'000}) {
      const std::string text = letters(bytes);
      EXPECT_TRUE((co_await client.call<shop::echo>(text)).value_or("") == text) << bytes;
      EXPECT_TRUE((co_await client.call<large_bodies::echo_later>(text)).value_or("") == text) << bytes;
      EXPECT_EQ((co_await client.call<shop::echo>("small")).value_or(""), "small") << "after " << bytes;
    }
  });
}

TEST_P(LargeBodies, many_at_once_come_in_order_and_whole) {
  serve();
  int right = 0;
  constexpr int count = 40;
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    int ended = 0;
    const auto one = [&](std::size_t i) -> asio::awaitable<void> {
      const std::string text = letters(i % 4 == 0 ? 500 : 200'000 + i * 1001, i);
      const auto back = co_await client.call<shop::echo>(text);
      right += back && *back == text ? 1 : 0;
      ++ended;
    };
    for (std::size_t i = 0; i < count; ++i) asio::co_spawn(io, one(i), [](const std::exception_ptr&) {});
    asio::steady_timer turn(io);
    while (ended < count) {
      turn.expires_after(std::chrono::milliseconds(1));
      co_await turn.async_wait(asio::use_awaitable);
    }
  });
  EXPECT_EQ(right, count);
}

TEST_P(LargeBodies, that_are_views_of_arguments_come_whole_however_slowly_they_are_read) {
  serve();
  constexpr int count = 12;  // far more than a transport accepts at once, while the peer does not read
  int right = 0, ended = 0;
  const std::string text = letters(3 << 20);
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const auto one = [&](asio::awaitable<Result<std::string>> call) -> asio::awaitable<void> {
      const auto back = co_await std::move(call);
      right += back && *back == text ? 1 : 0;
      ++ended;
    };
    const auto ignore = [](const std::exception_ptr&) {};
    for (int i = 0; i < count / 2; ++i) {
      asio::co_spawn(io, one(client.call<large_bodies::view_of>(text)), ignore);
      asio::co_spawn(io, one(client.call<large_bodies::view_of_later>(text)), ignore);
    }
    asio::steady_timer turn(io);
    while (ended < count) {
      turn.expires_after(std::chrono::milliseconds(1));
      co_await turn.async_wait(asio::use_awaitable);
    }
  });
  EXPECT_EQ(right, count);
}

TEST_P(LargeBodies, as_items_of_a_stream) {
  serve();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    auto stream = client.stream<large_bodies::echo_all>();
    for (const std::size_t bytes : {70'000, 10, 300'000}) {
      const std::string text = letters(bytes);
      EXPECT_TRUE(co_await stream.write(text));
      EXPECT_TRUE((co_await stream.read()).value_or("") == text) << bytes;
    }
    stream.close_write();
    EXPECT_TRUE(co_await stream.finish());
  });
}

// Beyond the largest message of a channel, so that no registered block is used for it.
TEST_P(LargeBodies, longer_than_any_message) {
  serve(80 << 20);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const std::string text = letters(70 << 20);
    EXPECT_EQ((co_await client.call<shop::length>(text)).value_or(0), 70 << 20);
    EXPECT_EQ((co_await client.call<shop::echo>("after")).value_or(""), "after");
  });
}

TEST_P(LargeBodies, a_call_that_ends_while_its_request_is_half_sent_leaves_the_connection_whole) {
  serve();
  const std::string text = letters(8 << 20);
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    std::array<asio::cancellation_signal, 6> signals;
    for (auto& signal : signals) co_await start(client, text, signal);
    // Sent in this round: the first has gone as far as it could.
    asio::steady_timer turn(io, std::chrono::milliseconds(0));
    co_await turn.async_wait(asio::use_awaitable);
    for (auto& signal : signals) signal.emit(asio::cancellation_type::terminal);
    const auto after = co_await client.call<shop::echo>("after");
    EXPECT_TRUE(after && *after == "after") << (after ? *after : after.error().what);
  });
  EXPECT_EQ(ends.size(), 6u);
}

TEST_P(LargeBodies, memory_comes_back_from_a_connection_that_closes_with_requests_half_sent) {
  serve();
  const std::string text = letters(8 << 20);
  std::array<asio::cancellation_signal, 6> signals;
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    for (auto& signal : signals) co_await start(client, text, signal);
    asio::steady_timer turn(io, std::chrono::milliseconds(0));
    co_await turn.async_wait(asio::use_awaitable);
    client.close();
  });
  run_until([&] { return ends.size() == signals.size() && server->open() == 0; });
  for (const auto end : ends) EXPECT_TRUE(!end || *end == Errc::closed) << name_of(*end);
  if (engine == nullptr) return;
  run_until([&] { return engine->stats().connections == 0; });
  EXPECT_EQ(engine->stats().pool.blocks, 0u);
}

TEST_P(LargeBodies, memory_comes_back_when_the_server_stops_with_replies_half_sent) {
  serve();
  const std::string text = letters(8 << 20);
  int answered = 0, ended = 0;
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const auto one = [&]() -> asio::awaitable<void> {
      const auto back = co_await client.call<shop::echo>(text);
      answered += back ? 1 : 0;
      ++ended;
    };
    for (int i = 0; i < 6; ++i) asio::co_spawn(io, one(), [](const std::exception_ptr&) {});
    asio::steady_timer turn(io);
    while (answered == 0) {
      turn.expires_after(std::chrono::milliseconds(0));
      co_await turn.async_wait(asio::use_awaitable);
    }
    server->stop();
    while (ended < 6) {
      turn.expires_after(std::chrono::milliseconds(1));
      co_await turn.async_wait(asio::use_awaitable);
    }
  });
  EXPECT_GE(answered, 1);
  if (engine == nullptr) return;
  run_until([&] { return engine->stats().connections == 0; });
  EXPECT_EQ(engine->stats().pool.blocks, 0u);
}

INSTANTIATE_TEST_SUITE_P(Over, LargeBodies, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
