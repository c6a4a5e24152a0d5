#include "transport/dial.hpp"

#include <gtest/gtest.h>
#include <netinet/tcp.h>

#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <optional>

namespace weir::transport {
namespace {

using asio::ip::tcp;

class Dial : public ::testing::Test {
 protected:
  // Runs until the attempt is over.
  std::error_code dial(const std::string& host, std::uint16_t port) {
    std::optional<std::error_code> outcome;
    asio::co_spawn(io, dial_tcp(resolver, socket, host, port),
                   [&](const std::exception_ptr&, std::error_code error) { outcome = error; });
    io.restart();
    io.run();
    return outcome.value_or(std::make_error_code(std::errc::interrupted));
  }
  std::uint16_t listen_on(const char* address) {
    acceptor.emplace(io, tcp::endpoint(asio::ip::make_address(address), 0));
    return acceptor->local_endpoint().port();
  }

  asio::io_context io;
  tcp::resolver resolver{io};
  tcp::socket socket{io};
  std::optional<tcp::acceptor> acceptor;
};

TEST_F(Dial, a_numeric_address_is_connected_to) {
  const std::uint16_t port = listen_on("127.0.0.1");
  EXPECT_FALSE(dial("127.0.0.1", port));
  EXPECT_EQ(socket.remote_endpoint().port(), port);
}

TEST_F(Dial, the_next_address_of_a_name_is_tried_when_one_refuses) {
  // "localhost" may be ::1 and 127.0.0.1, in this order; only the second listens.
  const std::uint16_t port = listen_on("127.0.0.1");
  EXPECT_FALSE(dial("localhost", port));
  EXPECT_TRUE(socket.remote_endpoint().address().is_v4());
}

TEST_F(Dial, small_messages_are_not_held_back) {
  const std::uint16_t port = listen_on("127.0.0.1");
  ASSERT_FALSE(dial("127.0.0.1", port));
  tcp::no_delay at_once;
  socket.get_option(at_once);
  EXPECT_TRUE(at_once.value());
}

TEST_F(Dial, a_refusal_is_the_error) {
  const std::uint16_t port = listen_on("127.0.0.1");
  acceptor->close();
  EXPECT_EQ(dial("127.0.0.1", port), asio::error::connection_refused);
}

TEST_F(Dial, a_socket_that_is_closed_meanwhile_ends_the_attempt) {
  const std::uint16_t port = listen_on("127.0.0.1");
  std::optional<std::error_code> outcome;
  asio::co_spawn(io, dial_tcp(resolver, socket, "127.0.0.1", port),
                 [&](const std::exception_ptr&, std::error_code error) { outcome = error; });
  while (!socket.is_open()) io.run_one();
  socket.close();
  io.run();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(*outcome);
}

TEST_F(Dial, a_lookup_that_is_cancelled_is_an_error) {
  constexpr int tries = 100;  // the resolver's thread may find the name before we cancel
  std::error_code error;
  for (int i = 0; i < tries && !error; ++i) {
    std::optional<tcp::resolver::results_type> found;
    asio::co_spawn(io, find_host(resolver, "localhost", 1, error),
                   [&](const std::exception_ptr&, tcp::resolver::results_type what) { found = what; });
    io.run_one();  // begins the lookup
    resolver.cancel();
    io.run();
    io.restart();
    ASSERT_TRUE(found);
  }
  EXPECT_EQ(error, asio::error::operation_aborted);
}

}  // namespace
}  // namespace weir::transport
