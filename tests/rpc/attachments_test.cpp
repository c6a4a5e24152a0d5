// How long attachments may be held, and where they may be let go, over every transport: over RDMA they lie in
// the device's memory.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/rpc/rpc_fixture.hpp"

namespace weir::rpc {
namespace {

using testing_support::RpcTest;

constexpr std::size_t large = 300'000;

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
  // Meanwhile the same memory is asked for and given back here.
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
    transport_there.engine = nullptr;  // of its own
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

INSTANTIATE_TEST_SUITE_P(Over, Attachments, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
