// How long attachments may be held, where they may be released, and buffers that are given to a call, over
// every transport: over RDMA they are in the device's memory.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "rpc/pool.hpp"
#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using testing_support::RpcTest;

constexpr std::size_t large = 300'000;

// A result of its own, in the connection's memory.
std::uint64_t letter(Context& context) {
  context.reply_attachment = context.buffer(large);
  std::memset(context.reply_attachment.data(), 'w', large);
  return large;
}

struct Shelf {
  std::vector<Buffer> stored;
  void store(Context& context) { stored.push_back(std::move(context.attachment)); }
};

std::string letters(std::size_t salt) {
  std::string text(large, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>((i + salt) * 31 + i / 251);
  return text;
}

class Attachments : public RpcTest {
 protected:
  std::vector<std::string> sent;
  Shelf shelf;

  void store_some() {
    server = make_server();
    server->add<&Shelf::store>(shelf);
    server->add<shop::reflect>();
    address = listen(*server);
    for (std::size_t i = 0; i < 40; ++i) sent.push_back(letters(i));
    with_client(address, [this](Client& client) -> asio::awaitable<void> {
      for (const std::string& text : sent) {
        CallOptions options;
        options.attachment = as_bytes(text);
        EXPECT_TRUE(co_await client.call<&Shelf::store>(options));
      }
    });
  }
};

TEST_P(Attachments, a_function_may_keep_as_many_as_it_likes) {
  store_some();
  ASSERT_EQ(shelf.stored.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) EXPECT_TRUE(shelf.stored[i].text() == sent[i]) << i;
}

TEST_P(Attachments, may_be_let_go_in_another_thread) {
  store_some();
  std::jthread other([kept = std::move(shelf.stored)]() mutable {
    while (!kept.empty()) kept.pop_back();
  });
  // Meanwhile the same memory is taken and returned here.
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    for (const std::string& text : sent) {
      Buffer back;
      CallOptions options;
      options.attachment = as_bytes(text);
      options.reply_attachment = &back;
      EXPECT_EQ((co_await client.call<shop::reflect>(options)).value_or(0), large);
      EXPECT_TRUE(back.text() == text);
    }
  });
}

TEST_P(Attachments, may_outlive_the_io_context) {
  Buffer back;
  {
    asio::io_context other(1);
    TransportOptions transport_there = transport("client");
    transport_there.engine = nullptr;  // it has its own engine
    serve<shop::reflect>();
    const std::string text = letters(3);
    bool ended = false;
    const auto call = [&]() -> asio::awaitable<void> {
      ConnectOptions options;
      options.transport = transport_there;
      auto client = co_await connect(address, options);
      if (!client) throw std::runtime_error(client.error().what);
      CallOptions with;
      with.attachment = as_bytes(text);
      with.reply_attachment = &back;
      EXPECT_EQ((co_await client->call<shop::reflect>(with)).value_or(0), large);
    };
    asio::co_spawn(other, call(), [&](const std::exception_ptr& thrown) {
      ended = true;
      if (thrown) std::rethrow_exception(thrown);
    });
    run_until([&] {
      other.poll();
      return ended;
    });
  }
  EXPECT_TRUE(back.text() == letters(3));
}

Buffer filled(Client& client, const std::string& text) {
  Buffer buffer = client.buffer(text.size());
  EXPECT_EQ(buffer.size(), text.size());
  std::memcpy(buffer.data(), text.data(), text.size());
  return buffer;
}

TEST_P(Attachments, that_are_given_come_whole_and_are_taken) {
  serve<shop::reflect, shop::reflect_later>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{40'000}, large, 20 * large}) {
      std::string text;
      while (text.size() < bytes) text += letters(text.size());
      text.resize(bytes);
      Buffer given = filled(client, text), back;
      CallOptions options;
      options.attachment_given = &given;
      options.reply_attachment = &back;
      EXPECT_EQ((co_await client.call<shop::reflect>(options)).value_or(0), bytes);
      EXPECT_TRUE(given.empty());
      EXPECT_TRUE(back.text() == text);
      given = std::move(back);  // the received memory may be released again
      EXPECT_EQ((co_await client.call<shop::reflect_later>(options)).value_or(0), bytes);
      EXPECT_TRUE(back.text() == text);
    }
  });
}

TEST_P(Attachments, that_are_given_are_sent_from_where_they_are) {
  serve<shop::reflect>();
  const bool by_device = GetParam() == std::string("rdma");  // with TLS, records are sent instead
  const auto registered = [this] { return engine != nullptr ? engine->stats().pool.used_bytes : 0; };
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    for (const bool gives : {true, false}) {
      const std::string text = letters(1);
      Buffer given = filled(client, text);
      CallOptions options;
      if (gives)
        options.attachment_given = &given;
      else
        options.attachment = as_bytes(text);
      const std::size_t before = registered();
      auto call = client.call<shop::reflect>(options);  // sent by now
      EXPECT_EQ(registered() >= before + large, by_device && !gives);
      EXPECT_EQ((co_await std::move(call)).value_or(0), large);
    }
  });
}

TEST_P(Attachments, that_are_given_stay_with_a_caller_who_is_refused) {
  serve<shop::reflect>();
  ConnectionLimits limits;
  limits.request.attachment_bytes = large - 1;
  with_client(
      address,
      [](Client& client) -> asio::awaitable<void> {
        Buffer given = filled(client, letters(2));
        CallOptions options;
        options.attachment_given = &given;
        const auto refused = co_await client.call<shop::reflect>(options);
        EXPECT_FALSE(refused);
        EXPECT_EQ(refused.error().code, Errc::too_large);
        EXPECT_TRUE(given.text() == letters(2));
        client.close();
        const auto closed = co_await client.call<shop::reflect>(options);
        EXPECT_FALSE(closed);
        EXPECT_EQ(closed.error().code, Errc::closed);
        EXPECT_TRUE(given.text() == letters(2));
      },
      limits);
}

TEST_P(Attachments, that_are_given_go_with_a_call_of_a_pool_at_whichever_attempt) {
  serve<shop::reflect>();
  PoolOptions options;
  options.connect = connect_options();
  Pool pool(io, static_list({"unix://" + folder.file("nobody"), address}), options);
  run([&]() -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) {
      Buffer given = Buffer::copy_of(letters(4)), back;
      CallOptions with;
      with.attachment_given = &given;
      with.reply_attachment = &back;
      EXPECT_EQ((co_await pool.call<shop::reflect>(with)).value_or(0), large);
      EXPECT_TRUE(back.text() == letters(4));
    }
  });
}

TEST_P(Attachments, in_memory_of_the_connections_may_be_sent_again_by_whoever_keeps_it) {
  server = make_server();
  server->add<&Shelf::store>(shelf);
  address = listen(*server);
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    Buffer kept = filled(client, letters(5));
    for (int i = 0; i < 3; ++i) {
      CallOptions options;
      options.attachment = kept.span();
      EXPECT_TRUE(co_await client.call<&Shelf::store>(options));
      EXPECT_TRUE(shelf.stored.back().text() == letters(5));
      const Buffer other = filled(client, letters(6));  // in whatever memory is free
      EXPECT_TRUE(kept.text() == letters(5));
    }
  });
}

TEST_P(Attachments, in_memory_of_the_connections_are_as_they_were_when_their_call_was_cancelled) {
  server = make_server();
  server->add<&Shelf::store>(shelf);
  address = listen(*server);
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    Buffer kept = filled(client, letters(9));
    {
      CallOptions options;
      options.attachment = kept.span();
      const auto dropped = client.call<&Shelf::store>(options);  // sent by now
    }
    std::memset(kept.data(), '#', large);
    EXPECT_TRUE(co_await client.ping(std::chrono::seconds(30)));
  });
  for (const Buffer& stored : shelf.stored) EXPECT_TRUE(stored.text() == letters(9));
}

// A result that is the same for all callers.
struct Poster {
  Buffer printed;
  std::uint64_t look(Context& context) {
    if (printed.empty()) {
      printed = context.buffer(large);
      std::memcpy(printed.data(), letters(7).data(), large);
    }
    context.reply_attachment = Buffer::borrowed(printed.span());
    return large;
  }
};

TEST_P(Attachments, of_results_may_be_lent_from_memory_of_the_connections) {
  Poster poster;
  server = make_server();
  server->add<&Poster::look>(poster);
  server->add<shop::reflect>();
  address = listen(*server);
  with_client(address, [&](Client& client) -> asio::awaitable<void> {
    for (int i = 0; i < 3; ++i) {
      Buffer back;
      CallOptions options;
      options.reply_attachment = &back;
      EXPECT_EQ((co_await client.call<&Poster::look>(options)).value_or(0), large);
      EXPECT_TRUE(back.text() == letters(7));
      Buffer other = filled(client, letters(8));
      options.attachment_given = &other;
      EXPECT_EQ((co_await client.call<shop::reflect>(options)).value_or(0), large);
      EXPECT_TRUE(poster.printed.text() == letters(7));
    }
  });
  poster.printed.reset();
}

TEST_P(Attachments, of_a_result_may_be_made_in_memory_of_the_connections) {
  serve<letter>();
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    Buffer back;
    CallOptions options;
    options.reply_attachment = &back;
    EXPECT_EQ((co_await client.call<letter>(options)).value_or(0), large);
    EXPECT_TRUE(back.text() == std::string(large, 'w'));
  });
}

INSTANTIATE_TEST_SUITE_P(Over, Attachments, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
