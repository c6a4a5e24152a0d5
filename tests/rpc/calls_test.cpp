// Calls over every transport.
#include <gtest/gtest.h>

#include <asio/experimental/awaitable_operators.hpp>

#include "rpc/server/reflection.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace odd {

int throws_a_number() { throw 7; }
asio::awaitable<int> throws_a_number_later() {
  co_await asio::post(co_await asio::this_coro::executor, asio::use_awaitable);
  throw 7;
}

}  // namespace odd

namespace weir::rpc {
namespace {

using testing_support::RpcTest;

class Calls : public RpcTest {
 protected:
  shop::Counter counter;

  void SetUp() override {
    RpcTest::SetUp();
    if (HasFatalFailure()) return;
    server = make_server();
    server->add<shop::echo, shop::length, shop::add, shop::nothing, shop::place, shop::place_later,
                shop::divide, shop::divide_later, shop::throws, shop::throws_later, shop::reflect,
                shop::reflect_later, shop::caller, odd::throws_a_number, odd::throws_a_number_later>();
    server->add<&shop::Counter::add, &shop::Counter::get>(counter);
    address = listen(*server);
  }
};

shop::Order an_order() {
  shop::Order order;
  order.id = -7;
  order.items = {{"bolt", 12}, {"nut", 300000}};
  order.note = "by noon";
  order.discount = 0.25;
  order.stock = {{"bolt", 1}, {"nut", -1}};
  order.currency = shop::Currency::dollar;
  return order;
}

TEST_P(Calls, plain_function) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto answer = co_await client.call<shop::echo>("hello");
    EXPECT_TRUE(answer) << answer.error().what;
    EXPECT_EQ(answer.value_or(""), "hello");
    EXPECT_EQ((co_await client.call<shop::length>("hello")).value_or(0), 5);
    EXPECT_EQ((co_await client.call<shop::add>(2, -3)).value_or(0), -1);
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
}

TEST_P(Calls, coroutine_with_context) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const shop::Order order = an_order();
    EXPECT_EQ((co_await client.call<shop::place_later>(order)).value_or(shop::Order()), order);
    EXPECT_EQ((co_await client.call<shop::place>(order)).value_or(shop::Order()), order);
  });
}

TEST_P(Calls, member_functions_of_an_object) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<&shop::Counter::add>(5)).value_or(0), 5);
    EXPECT_EQ((co_await client.call<&shop::Counter::get>()).value_or(0), 5);
  });
  EXPECT_EQ(counter.get(), 5);
}

TEST_P(Calls, by_name) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call_by_name<std::string>("shop.echo", "hello")).value_or(""), "hello");
    EXPECT_EQ((co_await client.call_by_name<int>("shop.add", 2, 3)).value_or(0), 5);
  });
}

TEST_P(Calls, functions_failures_reach_the_caller_with_their_cause) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<shop::divide>(7, 2)).value_or(0), 3);
    const auto divided = co_await client.call<shop::divide>(7, 0);
    EXPECT_EQ(divided.error().code, Errc::bad_arguments);
    EXPECT_EQ(divided.error().what, "division by zero: pass another divisor");
    EXPECT_EQ((co_await client.call<shop::divide_later>(7, 0)).error().code, Errc::bad_arguments);
    const auto thrown = co_await client.call<shop::throws>("no paper");
    EXPECT_EQ(thrown.error().code, Errc::failed);
    EXPECT_EQ(thrown.error().what, "shop.throws threw an exception; the server has its text");
    const auto later = co_await client.call<shop::throws_later>("no ink");
    EXPECT_EQ(later.error().what, "shop.throws_later threw an exception; the server has its text");
  });
}

TEST_P(Calls, texts_of_exceptions_reach_callers_if_asked_for) {
  ServerOptions options;
  options.exceptions_to_callers = true;
  server.reset();
  server = make_server(std::move(options));
  server->add<shop::throws, shop::throws_later>();
  address = listen(*server);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<shop::throws>("no paper")).error().what, "shop.throws threw: no paper");
    EXPECT_EQ((co_await client.call<shop::throws_later>("no ink")).error().what,
              "shop.throws_later threw: no ink");
  });
}

TEST_P(Calls, what_is_no_std_exception_reaches_the_caller_as_a_failure) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const char* name : {"odd.throws_a_number", "odd.throws_a_number_later"}) {
      const auto thrown = co_await client.call_by_name<int>(name);
      EXPECT_EQ(thrown.error().code, Errc::failed) << name;
      EXPECT_EQ(thrown.error().what, std::string(name) + " threw what is no std::exception");
    }
  });
}

TEST_P(Calls, unknown_functions_and_wrong_types_are_refused) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call_by_name<int>("shop.sell")).error().code, Errc::unknown_method);
    const auto unknown = co_await client.call<shop::sized>(1U);
    EXPECT_EQ(unknown.error().code, Errc::unknown_method);
    EXPECT_THAT(unknown.error().what, testing::StartsWith("the server has no function 'shop.sized'"));
    const auto wrong = co_await client.call_by_name<int>("shop.add", 1, "two");
    EXPECT_EQ(wrong.error().code, Errc::bad_arguments);
    EXPECT_EQ(wrong.error().what, "element 1: expected an integer, found text");
    EXPECT_EQ((co_await client.call_by_name<int>("shop.add", 1)).error().code, Errc::bad_arguments);
    EXPECT_EQ((co_await client.call_by_name<int>("shop.echo", "x")).error().code, Errc::bad_reply);
    EXPECT_EQ((co_await client.call<shop::echo>("still here")).value_or(""), "still here");
  });
}

TEST_P(Calls, an_integer_that_does_not_fit_is_not_sent) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const std::uint64_t before = client.stats().frames_sent;
    const auto refused = co_await client.call<shop::add>(1, 5'000'000'000);
    EXPECT_EQ(refused.error().code, Errc::bad_arguments);
    EXPECT_EQ(refused.error().what,
              "argument 2 of shop.add is 5000000000, which is no int32_t: that is -2147483648 to 2147483647; "
              "nothing was sent");
    EXPECT_EQ(client.stats().frames_sent, before);
    EXPECT_EQ(client.in_flight(), 0u);
    EXPECT_EQ((co_await client.call<shop::add>(std::int64_t{2}, std::size_t{3})).value_or(0), 5);
  });
}

// Sizes around those of one read, one record and one receive buffer.
TEST_P(Calls, arguments_and_attachments_of_all_sizes) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const std::size_t size :
         {0u, 1u, 100u, 16343u, 16344u, 16345u, 65536u, 262144u, 262145u, 3000000u}) {
      std::string text(size, ' ');
      for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31 + i / 251);
      EXPECT_EQ((co_await client.call<shop::echo>(text)).value_or("?"), text) << size;
      Buffer back;
      CallOptions options;
      options.attachment = as_bytes(text);
      options.reply_attachment = &back;
      EXPECT_EQ((co_await client.call<shop::reflect>(options)).value_or(1), size);
      EXPECT_EQ(back.text(), text) << size;
      EXPECT_EQ((co_await client.call<shop::reflect_later>(options)).value_or(1), size);
      EXPECT_EQ(back.text(), text) << size;
    }
  });
}

TEST_P(Calls, reply_attachment_lands_in_the_callers_memory) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const std::string text(500'000, 'a');
    std::vector<std::byte> place(600'000);
    Buffer back;
    CallOptions options;
    options.attachment = as_bytes(text);
    options.reply_into = place;
    options.reply_attachment = &back;
    EXPECT_EQ((co_await client.call<shop::reflect>(options)).value_or(0), text.size());
    EXPECT_EQ(back.data(), place.data());
    EXPECT_EQ(back.text(), text);
  });
}

// All are sent before the first reply arrives, in few writes.
TEST_P(Calls, many_calls_at_once_share_writes) {
  constexpr int calls = 1000;
  int right = 0, ended = 0;
  LinkStats stats;
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    const auto one = [&](int i) -> asio::awaitable<void> {
      if (i % 2 == 0) {
        const auto sum = co_await client.call<shop::add>(i, 1);
        right += sum.value_or(0) == i + 1 ? 1 : 0;
      } else {
        shop::Order order;
        order.id = i;
        const auto placed = co_await client.call<shop::place_later>(order);
        right += placed && placed->id == i ? 1 : 0;
      }
      ++ended;
    };
    const auto executor = co_await asio::this_coro::executor;
    for (int i = 0; i < calls; ++i) asio::co_spawn(executor, one(i), [](const std::exception_ptr&) {});
    while (ended < calls) co_await asio::post(executor, asio::use_awaitable);
    stats = client.stats();
  });
  EXPECT_EQ(right, calls);
  EXPECT_EQ(stats.frames_sent, calls + 1);  // one more for the hello
  EXPECT_LT(stats.writes, calls / 4);
}

TEST_P(Calls, client_moves_and_closes) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    Client moved = std::move(client);
    EXPECT_FALSE(client.is_open());
    EXPECT_TRUE(co_await moved.call<shop::nothing>());
    moved.close();
    EXPECT_EQ((co_await moved.call<shop::nothing>()).error().code, Errc::closed);
  });
}

TEST_P(Calls, server_knows_the_callers_certificate) {
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    const auto who = co_await client.call<shop::caller>();
    EXPECT_EQ(who.value_or("?"), over("tls") ? "CN=client" : "");
  });
}

TEST_P(Calls, server_tells_what_it_has) {
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const auto methods = co_await client.call_by_name<std::vector<MethodInfo>>(methods_method);
    if (!methods) throw std::runtime_error(methods.error().what);
    std::map<std::string, std::string> by_name;
    for (const MethodInfo& method : *methods) by_name[method.name] = method.schema;
    EXPECT_EQ(by_name.at("shop.add"), "(i32, i32) -> i32");
    EXPECT_EQ(by_name.at("shop.nothing"), "() -> nil");
    EXPECT_EQ(by_name.at("shop.Counter.add"), "(i32) -> i32");
    EXPECT_EQ(by_name.at("shop.place_later"),
              "(Order{id: i64, items: [Item{name: str, count: u32}], note: ?str, discount: <nil | f64 | "
              "str>, stock: "
              "{str: i32}, currency: u8<euro = 0, dollar = 1>}) -> Order");
  });
}

class SharedReceives : public RpcTest {};

TEST_P(SharedReceives, many_connections_post_no_more_than_one_does) {
  constexpr std::size_t many = 50;
  share_receives = true;
  serve<shop::echo>();
  std::vector<Client> clients;
  std::size_t posted_for_one = 0;
  run([&]() -> asio::awaitable<void> {
    ConnectOptions options = connect_options();
    for (std::size_t i = 0; i < many; ++i) {
      auto client = co_await connect(address, options);
      if (!client) throw std::runtime_error(client.error().what);
      clients.push_back(std::move(*client));
      EXPECT_EQ((co_await clients.back().call<shop::echo>("hello")).value_or(""), "hello");
      if (i == 0) posted_for_one = engine->stats().shared.posted_bytes;
    }
  });
  EXPECT_EQ(engine->stats().shared.channels, 2 * many) << "of both ends, which are here";
  EXPECT_GT(posted_for_one, 0u);
  EXPECT_EQ(engine->stats().shared.posted_bytes, posted_for_one);
}

INSTANTIATE_TEST_SUITE_P(Over, SharedReceives, testing::Values("rdma"), testing_support::transport_name);
INSTANTIATE_TEST_SUITE_P(Over, Calls, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
