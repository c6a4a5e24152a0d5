// Compression between a client and a server, over every transport: which end compresses, and the limits.
#include <gtest/gtest.h>

#include "tests/rpc/rpc_fixture.hpp"

namespace packed {

asio::awaitable<void> shout(weir::rpc::Reader<std::string> in, weir::rpc::Writer<std::string> out) {
  while (auto line = co_await in.read())
    if (const auto written = co_await out.write(*line + "!"); !written) co_return;
}

asio::awaitable<std::string> echo_later(std::string text) { co_return text; }

}  // namespace packed

namespace weir::rpc {
namespace {

class CompressedCalls : public testing_support::RpcTest {
 protected:
  void start(Compression with, std::uint32_t body_bytes = 64 << 20) {
    ServerOptions options;
    options.compression.with = with;
    options.limits.frame.body_bytes = body_bytes;
    options.stats = true;
    serve<shop::echo, shop::sized, shop::reflect, packed::shout, packed::echo_later>(std::move(options));
  }
  // A client that has learned what the server accepts.
  void with(CompressionOptions compression, std::function<asio::awaitable<void>(Client&)> body,
            ConnectionLimits limits = {}) {
    run([&]() -> asio::awaitable<void> {
      ConnectOptions options = connect_options(limits);
      options.compression = compression;
      auto client = co_await connect(address, options);
      if (!client) throw std::runtime_error(client.error().what);
      EXPECT_TRUE(co_await client->call<shop::echo>("first"));
      co_await body(*client);
    });
  }
};

TEST_P(CompressedCalls, large_bodies_are_smaller_on_the_wire_in_both_directions) {
  for (const Compression with_this : {Compression::lz4, Compression::zstd}) {
    start(Compression::zstd);
    with({with_this}, [](Client& client) -> asio::awaitable<void> {
      const std::string text(100'000, 'x');
      EXPECT_EQ((co_await client.call<shop::echo>(text)).value_or(""), text);
      const LinkStats stats = client.stats();
      EXPECT_EQ(stats.compressed_sent.bodies, 1u);
      EXPECT_GT(stats.compressed_sent.bytes_before, text.size());
      EXPECT_LT(stats.compressed_sent.bytes_after, 1000u);
      EXPECT_EQ(stats.compressed_received.bodies, 1u);
      EXPECT_LT(stats.compressed_received.bytes_after, 1000u);
    });
    server.reset();
  }
}

TEST_P(CompressedCalls, the_server_counts_those_of_each_function_and_all_together) {
  start(Compression::zstd);
  with({Compression::lz4}, [this](Client& client) -> asio::awaitable<void> {
    const std::string text(100'000, 'x');
    EXPECT_TRUE(co_await client.call<shop::echo>(text));
    EXPECT_TRUE(co_await client.call<packed::echo_later>(text));
    auto shout = client.stream<packed::shout>();
    EXPECT_TRUE(co_await shout.write(text));
    const auto loud = co_await shout.read();
    EXPECT_TRUE(loud);
    EXPECT_TRUE(co_await shout.finish());
    int seen = 0;
    for (const MethodReport& one : server->method_stats()) {
      const bool echoes = one.name == "shop.echo" || one.name == "packed.echo_later";
      seen += echoes ? 1 : 0;
      for (const CompressionCounts& counts : {one.packed_in, one.packed_out}) {
        EXPECT_EQ(counts.bodies, echoes ? 1u : 0u) << one.name;
        EXPECT_EQ(counts.bytes_before > text.size(), echoes) << one.name;
        EXPECT_LT(counts.bytes_after, 1000u) << one.name;
      }
    }
    EXPECT_EQ(seen, 2);
    const ServerStats all = server->stats();
    EXPECT_EQ(all.compressed_received.bodies, 3u);
    EXPECT_EQ(all.compressed_sent.bodies, 3u);
    EXPECT_GT(all.compressed_sent.bytes_before, 3 * text.size());
    EXPECT_LT(all.compressed_sent.bytes_after, 3000u);
  });
}

TEST_P(CompressedCalls, bodies_below_the_size_go_as_they_are) {
  start(Compression::lz4);
  CompressionOptions compression{Compression::lz4, 5000};
  with(compression, [](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<shop::echo>(std::string(4900, 'x')));
    EXPECT_EQ(client.stats().compressed_sent.bodies, 0u);
    EXPECT_EQ(client.stats().compressed_received.bodies, 1u);  // the server has a different threshold
    EXPECT_TRUE(co_await client.call<shop::echo>(std::string(5100, 'x')));
    EXPECT_EQ(client.stats().compressed_sent.bodies, 1u);
  });
}

TEST_P(CompressedCalls, nothing_is_compressed_unless_both_ends_say_so) {
  const std::pair<Compression, Compression> rows[] = {{Compression::zstd, Compression::none},
                                                      {Compression::none, Compression::zstd}};
  for (const auto& [here, there] : rows) {
    start(there);
    with({here}, [](Client& client) -> asio::awaitable<void> {
      const std::string text(100'000, 'x');
      EXPECT_EQ((co_await client.call<shop::echo>(text)).value_or(""), text);
      EXPECT_EQ(client.stats().compressed_sent.bodies, 0u);
      EXPECT_EQ(client.stats().compressed_received.bodies, 0u);
    });
    server.reset();
  }
}

TEST_P(CompressedCalls, items_of_streams_are_compressed_and_attachments_are_not) {
  start(Compression::lz4);
  with({Compression::lz4}, [](Client& client) -> asio::awaitable<void> {
    const std::string text(50'000, 'x');
    auto stream = client.stream<packed::shout>();
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(co_await stream.write(text));
      const auto line = co_await stream.read();
      EXPECT_EQ(line.value_or(""), text + "!");
    }
    EXPECT_TRUE(co_await stream.finish());
    EXPECT_EQ(client.stats().compressed_sent.bodies, 20u);
    EXPECT_EQ(client.stats().compressed_received.bodies, 20u);
    Buffer back;
    CallOptions options;
    options.attachment = as_bytes(text);
    options.reply_attachment = &back;
    EXPECT_TRUE(co_await client.call<shop::reflect>(options));
    EXPECT_EQ(back.text(), text);
    EXPECT_EQ(client.stats().compressed_sent.bodies, 20u);
  });
}

TEST_P(CompressedCalls, limits_hold_for_the_size_before_compression) {
  start(Compression::zstd, 10'000);
  with({Compression::zstd}, [this](Client& client) -> asio::awaitable<void> {
    const std::string bomb(20'000, 'x');
    const auto refused = co_await client.call<shop::echo>(bomb);
    EXPECT_FALSE(refused);
    // Over TLS the server's last frame is lost if an earlier write is still in progress.
    if (!over("tls") || refused.error().code != Errc::connection_lost) {
      EXPECT_EQ(refused.error().code, Errc::too_large) << refused.error().what;
    }
    EXPECT_FALSE(client.is_open());
    EXPECT_EQ(client.stats().compressed_sent.bodies, 1u);
    EXPECT_LT(client.stats().compressed_sent.bytes_after, 1000u);  // small enough to arrive, but refused
  });
}

TEST_P(CompressedCalls, a_reply_beyond_the_client_s_limit_ends_its_connection_with_the_cause) {
  start(Compression::zstd);
  ConnectionLimits limits;
  limits.frame.body_bytes = 10'000;
  with(
      {Compression::zstd},
      [](Client& client) -> asio::awaitable<void> {
        EXPECT_EQ((co_await client.call<shop::sized>(20'000u)).error().code, Errc::too_large);
      },
      limits);
}

INSTANTIATE_TEST_SUITE_P(Over, CompressedCalls, testing_support::transports, testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
