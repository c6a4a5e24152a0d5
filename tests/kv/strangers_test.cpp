// Clients that have not given the password: how much they may hold, and how long they may take.
#include <gtest/gtest.h>

#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

Settings with_password() {
  Settings settings = quiet_settings();
  settings.requirepass = "secret";
  return settings;
}

// Three arguments of 16 KiB, as many bytes as a stranger may send, of a request that never ends.
std::string unfinished_request() {
  std::string bytes = "*10\r\n";
  for (int i = 0; i < 3; ++i) bytes += "$16384\r\n" + std::string(16384, 'x') + "\r\n";
  return bytes;
}

// Sends as much of it as the server accepts: it may close in the middle.
void offer(WireClient& client, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(client.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

TEST(Strangers, unfinished_request_is_small) {
  RunningServer server(with_password());
  WireClient bad = server.connect();
  bad.send(unfinished_request());
  while (server.run([](Server& s) { return s.stats.bytes_in; }) < 3 * 16384) {
  }
  EXPECT_TRUE(bad.quiet());
  offer(bad, "$16384\r\n" + std::string(16384, 'x'));
  bad.until_closed();
  EXPECT_NE(server.log().find("larger than those of a client without the password may be"), std::string::npos)
      << server.log();
}

TEST(Strangers, together_hold_a_bounded_amount) {
  RunningServer server(with_password());
  server.run([](Server& s) { s.strangers.most_bytes = 150'000; });
  WireClient first = server.connect();
  WireClient second = server.connect();
  WireClient third = server.connect();
  first.send(unfinished_request());
  second.send(unfinished_request());
  while (server.run([](Server& s) { return s.stats.bytes_in; }) < 6 * 16384) {
  }
  offer(third, unfinished_request());
  EXPECT_EQ(third.until_closed(), "");
  EXPECT_NE(server.log().find("clients without the password hold too much memory"), std::string::npos);
  EXPECT_EQ(server.connect().call({"AUTH", "secret"}), "+OK\r\n")
      << "who says the password at once is let in";
  first.close();
  while (server.run([](Server& s) { return s.strangers.bytes; }) > 80'000) {
  }
  WireClient fourth = server.connect();
  fourth.send(unfinished_request());
  while (server.run([](Server& s) { return s.strangers.bytes; }) < 120'000) {
  }
  EXPECT_TRUE(fourth.quiet());
}

TEST(Strangers, have_a_time_limit) {
  RunningServer server(with_password());
  WireClient known = server.connect();
  EXPECT_EQ(known.call({"AUTH", "secret"}), "+OK\r\n");
  WireClient silent = server.connect();
  WireClient stopped = server.connect();
  stopped.send("*2\r\n$4\r\nAU");
  await_clients(server, 3);
  pass_ms(server, 59'000);
  WireClient late = server.connect();
  await_clients(server, 4);
  pass_ms(server, 2'000);
  EXPECT_EQ(silent.until_closed(), "");
  EXPECT_EQ(stopped.until_closed(), "");
  EXPECT_EQ(late.call({"AUTH", "secret"}), "+OK\r\n") << "each has its own minute";
  pass_ms(server, 1'000'000);
  EXPECT_EQ(known.call({"PING"}), "+PONG\r\n") << "the limit is not for who has given the password";
  EXPECT_EQ(late.call({"PING"}), "+PONG\r\n");
}

TEST(Strangers, time_begins_again_with_RESET) {
  RunningServer server(with_password());
  WireClient client = server.connect();
  EXPECT_EQ(client.call({"AUTH", "secret"}), "+OK\r\n");
  pass_ms(server, 100'000);
  EXPECT_EQ(client.call({"RESET"}), "+RESET\r\n");
  pass_ms(server, 59'000);
  EXPECT_EQ(client.call({"PING"}), "-NOAUTH Authentication required.\r\n");
  pass_ms(server, 2'000);
  EXPECT_EQ(client.until_closed(), "");
}

TEST(Strangers, time_limit_is_a_setting_and_0_is_none) {
  RunningServer server(with_password());
  WireClient known = server.connect();
  EXPECT_EQ(known.call({"AUTH", "secret"}), "+OK\r\n");
  EXPECT_EQ(known.call({"CONFIG", "SET", "auth-timeout", "0"}), "+OK\r\n");
  WireClient silent = server.connect();
  await_clients(server, 2);
  pass_ms(server, 1'000'000);
  EXPECT_EQ(server.run([](Server& s) { return s.clients.size(); }), 2u);
  EXPECT_EQ(known.call({"CONFIG", "SET", "auth-timeout", "60"}), "+OK\r\n");
  pass_ms(server, 0);
  EXPECT_EQ(silent.until_closed(), "");
}

TEST(Strangers, leave_half_of_the_seats_to_those_who_know_the_password) {
  Settings settings = with_password();
  settings.maxclients = 4;
  RunningServer server(settings);
  WireClient oldest = server.connect();
  await_clients(server, 1);
  WireClient second = server.connect();
  await_clients(server, 2);
  pass_ms(server, 1'000);
  WireClient third = server.connect();
  EXPECT_EQ(oldest.until_closed(), "") << "it made room";
  EXPECT_EQ(third.call({"AUTH", "secret"}), "+OK\r\n");
  EXPECT_EQ(second.call({"AUTH", "secret"}), "+OK\r\n");
}

TEST(Strangers, that_come_all_at_once_have_a_second_each) {
  Settings settings = with_password();
  settings.maxclients = 4;
  RunningServer server(settings);
  std::vector<WireClient> crowd;
  for (int i = 0; i < 4; ++i) crowd.push_back(server.connect());
  await_clients(server, 4);
  for (WireClient& client : crowd) EXPECT_EQ(client.call({"AUTH", "secret"}), "+OK\r\n");
}

// Full servers: which client leaves for the next one.
struct SeatCase {
  const char* name;
  bool password;
  const char*
      events;  // a number: a client comes from that address; a lower-case letter: client a, b, ... sends
  const char* leave;  // who is gone then: one for each client that came while four were there
};
class Seats : public ::testing::TestWithParam<SeatCase> {};

TEST_P(Seats, are_given_up_by_the_silent_ones_of_the_address_with_the_most) {
  Settings settings = GetParam().password ? with_password() : quiet_settings();
  settings.port = any_port;
  settings.maxclients = 4;
  RunningServer server(settings);
  server.stop_clock();
  const std::uint16_t port = server.run([](Server& s) { return s.port("tcp"); });
  std::vector<WireClient> all;
  std::vector<std::uint64_t> numbers{0};  // of no client
  std::uint64_t bytes = 0;
  for (const char event : std::string_view(GetParam().events)) {
    if (event >= 'a') {
      all[static_cast<std::size_t>(event - 'a')].send("*");
      ++bytes;
      while (server.run([](Server& s) { return s.stats.bytes_in; }) != bytes) std::this_thread::yield();
      continue;
    }
    all.push_back(WireClient::tcp_from(static_cast<std::uint8_t>(event - '0'), port));
    const auto newest = [](Server& s) { return s.clients.empty() ? 0 : s.clients.rbegin()->first; };
    while (server.run(newest) == numbers.back()) std::this_thread::yield();
    numbers.push_back(server.run(newest));
  }
  std::string left;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!server.run([&](Server& s) { return s.clients.contains(numbers[i + 1]); }))
      left += static_cast<char>('a' + i);
  EXPECT_EQ(left, GetParam().leave);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Seats,
    ::testing::Values(SeatCase{"oldest_of_one_address", false, "11111", "a"},
                      SeatCase{"of_the_address_with_the_most", false, "12222", "b"},
                      SeatCase{"of_the_address_with_the_most_again", false, "122223", "bc"},
                      SeatCase{"silent_before_one_that_speaks", false, "11a1b11", "c"},
                      SeatCase{"without_the_password_too", true, "12222", "b"},
                      SeatCase{"silent_before_one_that_speaks_without_the_password", true, "11a111", "b"}),
    [](const auto& instance) { return instance.param.name; });

TEST(Seats, are_kept_by_clients_that_have_asked) {
  Settings settings = quiet_settings();
  settings.maxclients = 3;
  RunningServer server(settings);
  WireClient first = server.connect(), second = server.connect();
  EXPECT_EQ(first.call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(second.call({"PING"}), "+PONG\r\n");
  for (int i = 0; i < 20; ++i) {
    const WireClient silent = server.connect(), another = server.connect();
    WireClient asks = server.connect();
    EXPECT_EQ(asks.call({"PING"}), "+PONG\r\n");
  }
  EXPECT_EQ(first.call({"PING"}), "+PONG\r\n");
  EXPECT_EQ(second.call({"PING"}), "+PONG\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
