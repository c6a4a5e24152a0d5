// Bad input and faults: a misbehaving client gets an error or is closed, and no other client notices.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <asio/steady_timer.hpp>

#include "kv/net/socket_listener.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr const char* pong = "+PONG\r\n";

TEST(Faults, malformed_request_closes_that_client_only) {
  RunningServer server;
  WireClient good = server.connect();
  WireClient bad = server.connect();
  good.send("*2\r\n$4\r\nEC");
  bad.send("*1\r\n!oops\r\n");
  EXPECT_EQ(bad.until_closed(), "-ERR Protocol error: expected '$', got '!'\r\n");
  good.send("HO\r\n$1\r\nx\r\n");
  EXPECT_EQ(good.reply(), "$1\r\nx\r\n");
}

TEST(Faults, http_request_is_closed_before_its_body_runs) {
  RunningServer server;
  for (const std::string head :
       {"POST / HTTP/1.1\r\n", "post / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n"}) {
    WireClient browser = server.connect();
    browser.send(head + "\r\nSET k v\r\n");
    EXPECT_EQ(browser.until_closed(), "") << head;
  }
  EXPECT_EQ(server.connect().call({"EXISTS", "k"}), ":0\r\n");
}

TEST(Faults, oversized_argument_is_refused_before_it_arrives) {
  RunningServer server;
  WireClient bad = server.connect();
  bad.call({"CONFIG", "SET", "proto-max-bulk-len", "1mb"});
  bad.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n");
  EXPECT_EQ(bad.until_closed(), "-ERR Protocol error: invalid bulk length\r\n");
  EXPECT_EQ(server.connect().call({"PING"}), pong);
}

TEST(Faults, client_that_dies_in_the_middle_of_a_write_leaves_nothing) {
  RunningServer server;
  WireClient witness = server.connect();
  {
    WireClient dying = server.connect();
    dying.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n" + std::string(50000, 'x'));
    witness.call({"PING"});
  }
  while (server.run([](Server& s) { return s.clients.size(); }) != 1) {
  }
  EXPECT_EQ(witness.call({"EXISTS", "k"}), ":0\r\n");
}

TEST(Faults, client_that_dies_with_replies_waiting_is_forgotten) {
  RunningServer server;
  WireClient witness = server.connect();
  witness.call({"SET", "k", std::string(1 << 20, 'x')});
  {
    WireClient dying = server.connect();
    for (int i = 0; i < 20; ++i) dying.send(encode({"GET", "k"}));
  }
  while (server.run([](Server& s) { return s.clients.size(); }) != 1) {
  }
  EXPECT_EQ(witness.call({"PING"}), pong);
}

TEST(Faults, client_that_never_reads_holds_a_bounded_amount) {
  RunningServer server;
  WireClient witness = server.connect();
  witness.call({"SET", "k", std::string(1 << 20, 'x')});
  WireClient deaf = server.connect();
  for (int i = 0; i < 200; ++i) deaf.send(encode({"GET", "k"}));
  EXPECT_EQ(witness.call({"PING"}), pong);
  const std::size_t waiting = server.run([](Server& s) { return s.clients.rbegin()->second->output.size(); });
  EXPECT_LT(waiting, 12u << 20);
  // When it finally reads, it gets everything.
  for (int i = 0; i < 200; ++i) ASSERT_EQ(deaf.reply().size(), (1u << 20) + 12);
}

TEST(Faults, subscriber_that_never_reads_is_closed_at_its_limit) {
  RunningServer server;
  WireClient speaker = server.connect();
  speaker.call({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 2mb 0 0"});
  WireClient deaf = server.connect();
  deaf.call({"SUBSCRIBE", "ch"});
  const std::string message(100000, 'm');
  std::string heard = ":1\r\n";
  for (int i = 0; i < 1000 && heard == ":1\r\n"; ++i) heard = speaker.call({"PUBLISH", "ch", message});
  EXPECT_EQ(heard, ":0\r\n");
  EXPECT_NE(server.log().find("more than client-output-buffer-limit allows"), std::string::npos)
      << server.log();
}

TEST(Faults, reply_beyond_the_hard_limit_ends_its_client) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"CONFIG", "SET", "client-output-buffer-limit", "normal 100000 0 0"});
  a.call({"SET", "small", std::string(90'000, 'x')});
  a.call({"SET", "large", std::string(110'000, 'x')});
  EXPECT_EQ(a.call({"GET", "small"}).size(), 90'010u);
  a.send(encode({"GET", "large"}));
  EXPECT_EQ(a.until_closed(), "");
}

TEST(Faults, subscriber_over_its_soft_limit_is_closed_in_time_though_nothing_more_is_said) {
  RunningServer server;
  WireClient speaker = server.connect();
  speaker.call({"CONFIG", "SET", "client-output-buffer-limit", "pubsub 0 1mb 10"});
  WireClient deaf = server.connect();
  deaf.call({"SUBSCRIBE", "ch"});
  const auto over = [](Server& s) {
    return s.clients.rbegin()->second->traffic.over_soft_limit_since_ms != 0;
  };
  while (!server.run(over)) speaker.call({"PUBLISH", "ch", std::string(100'000, 'm')});
  const auto after = [&](int ms) {
    server.advance_ms(ms);
    return server.run([](Server& s) {
      s.tick();
      return s.clients.size();
    });
  };
  EXPECT_EQ(after(9'900), 2u);
  EXPECT_EQ(after(200), 1u);
}

TEST(Faults, thousand_connections_opened_and_dropped) {
  RunningServer server;
  WireClient witness = server.connect();
  for (int i = 0; i < 1000; ++i) {
    WireClient passing = server.connect();
    if (i % 3 == 0) passing.send("*1\r\n$4\r\nPI");
    if (i % 3 == 1) passing.send(encode({"SUBSCRIBE", "ch" + std::to_string(i)}));
  }
  while (server.run([](Server& s) { return s.clients.size(); }) != 1) {
  }
  EXPECT_EQ(witness.call({"PUBSUB", "CHANNELS"}), "*0\r\n");
}

TEST(Faults, client_above_maxclients_is_told_and_closed) {
  Settings settings = quiet_settings();
  settings.maxclients = 2;
  RunningServer server(settings);
  WireClient a = server.connect();
  WireClient b = server.connect();
  a.call({"PING"});
  b.call({"PING"});
  EXPECT_EQ(server.connect().until_closed(), "-ERR max number of clients reached\r\n");
  EXPECT_EQ(a.call({"PING"}), pong);
}

TEST(Faults, running_out_of_descriptors_does_not_spin_and_passes) {
  RunningServer server;
  WireClient witness = server.connect();
  witness.call({"PING"});
  // This process is the server, too: leave no descriptor except one for the client's own socket.
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const int next = ::dup(0);
  ::close(next);
  rlimit tight{static_cast<rlim_t>(next) + 1, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &tight);
  WireClient late = server.connect();
  late.send(encode({"PING"}));
  while (server.log().find("cannot accept clients") == std::string::npos) {
  }
  EXPECT_EQ(witness.call({"PING"}), pong);
  EXPECT_TRUE(late.quiet());
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(late.reply(), pong);
}

// Its timer's handler is queued behind the event that ends it, with an error code that says that the time was
// over.
TEST(Faults, listener_that_ends_as_its_pause_does_is_not_touched_again) {
  asio::io_context io;
  SocketPoller poller(io, [] {});
  Opened<BoundSocket> bound = bind_tcp("127.0.0.1", 0, 5);
  ASSERT_TRUE(bound);
  const OwnedFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(bound->port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  bool paused = false;
  auto listener = std::make_unique<SocketListener>(
      poller, std::move(bound->fd), bound->address, bound->port, [](const OwnedFd&) {},
      [&](std::string_view) { paused = true; });
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  asio::steady_timer end(io, std::chrono::milliseconds(100));
  end.async_wait([&](const std::error_code&) { listener.reset(); });
  while (!paused) io.poll();
  setrlimit(RLIMIT_NOFILE, &before);
  const auto both_due = std::chrono::steady_clock::now() + std::chrono::milliseconds(101);
  while (std::chrono::steady_clock::now() < both_due) {
  }
  io.poll();
  EXPECT_EQ(listener, nullptr);
}

TEST(Faults, large_argument_that_grows_beyond_the_query_buffer_limit_closes_its_client) {
  RunningServer server;
  WireClient bad = server.connect();
  bad.call({"CONFIG", "SET", "client-query-buffer-limit", "1mb"});
  bad.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$8388608\r\n");
  try {
    for (int i = 0; i < 8; ++i) bad.send(std::string(1 << 20, 'x'));
  } catch (const std::runtime_error&) {
    // It was closed before all of that was sent.
  }
  EXPECT_EQ(bad.until_closed(), "");
  EXPECT_NE(server.log().find("client-query-buffer-limit"), std::string::npos);
  EXPECT_EQ(server.connect().call({"PING"}), pong);
}

TEST(Faults, several_large_arguments_count_together_for_the_query_buffer_limit) {
  RunningServer server;
  WireClient bad = server.connect();
  bad.call({"CONFIG", "SET", "client-query-buffer-limit", "1mb"});
  const std::string half(600'000, 'x');
  try {
    bad.send(encode({"MSET", "a", half, "b", half}));
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(bad.until_closed(), "");
  EXPECT_EQ(server.connect().call({"EXISTS", "a"}), ":0\r\n");
}

TEST(Faults, large_argument_within_the_query_buffer_limit_is_taken) {
  RunningServer server;
  WireClient a = server.connect();
  a.call({"CONFIG", "SET", "client-query-buffer-limit", "1mb"});
  EXPECT_EQ(a.call({"SET", "k", std::string(1'000'000, 'x')}), "+OK\r\n");
}

TEST(Faults, requests_that_never_end_are_closed_at_the_query_buffer_limit) {
  RunningServer server;
  WireClient bad = server.connect();
  bad.call({"CONFIG", "SET", "client-query-buffer-limit", "1mb"});
  std::string request = "*100000\r\n";
  for (int i = 0; i < 90000; ++i) request += "$10\r\n0123456789\r\n";
  try {
    bad.send(request);
    bad.until_closed();
  } catch (const std::exception&) {
    // Being closed while sending counts, too.
  }
  EXPECT_NE(server.log().find("client-query-buffer-limit"), std::string::npos);
  EXPECT_EQ(server.connect().call({"PING"}), pong);
}

}  // namespace
}  // namespace weir::kv::testing
