// What hostile clients can make a server hold and do: raw frames over TCP to a server that also has a
// well-behaved client.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <cerrno>
#include <list>

#include "rdma/engine.hpp"
#include "rdma/stream.hpp"
#include "rpc/stream.hpp"
#include "tests/rpc/rpc_fixture.hpp"
#include "transport/handshake_places.hpp"

namespace strangers {

struct Wide {
  std::string a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x;
};
int wide_calls = 0;
std::uint64_t wides(const std::vector<Wide>& all) {
  ++wide_calls;
  return all.size();
}
int small_calls_before = -1;
void note() { small_calls_before = wide_calls; }
std::size_t text_calls = 0;
std::uint64_t texts(const std::vector<std::string>& all) {
  ++text_calls;
  return all.size();
}
asio::awaitable<void> deaf(weir::rpc::Reader<std::string>, weir::rpc::Context& context) {
  return shop::wait_for_ever(context);
}

}  // namespace strangers

namespace weir::rpc {
namespace {

// A socket that sends what the test wants.
class Stranger {
 public:
  explicit Stranger(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto parsed = parse_address(address);
    port_ = parsed->port;
  }
  ~Stranger() { close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  Stranger& connects() {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    fcntl(fd_, F_SETFL, O_NONBLOCK);
    return *this;
  }
  // Sends as much as the socket accepts; returns how much that was.
  std::size_t says(std::span<const std::byte> bytes) {
    return static_cast<std::size_t>(
        std::max<ssize_t>(0, send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL)));
  }
  // Reads what has arrived; returns true if the server has closed.
  bool is_left() {
    std::byte place[4096];
    for (;;) {
      const ssize_t got = recv(fd_, place, sizeof place, 0);
      if (got < 0 && errno == EAGAIN) return false;
      if (got <= 0) return true;
      heard_.append({place, static_cast<std::size_t>(got)});
    }
  }
  bool has_heard() const { return !heard_.span().empty(); }
  // The error in the reply with number 0, which says why the connection ends.
  std::optional<Errc> why() {
    std::optional<Errc> cause;
    each_reply([&](const FrameHeader& header) {
      if (header.id == 0) cause = errc_of(header.status);
    });
    return cause;
  }
  // Whether call 1 had a result.
  bool is_answered() {
    bool answered = false;
    each_reply(
        [&](const FrameHeader& header) { answered = answered || (header.id == 1 && header.status == 0); });
    return answered;
  }
  // Errors of calls.
  int replies_that_say(Errc code) {
    int count = 0;
    each_reply([&](const FrameHeader& header) {
      if (header.id != 0 && errc_of(header.status) == code) ++count;
    });
    return count;
  }

 private:
  template <class What>
  void each_reply(What what) {
    const std::span<const std::byte> all = heard_.span();
    for (std::size_t at = 0; at + frame_header_bytes <= all.size();) {
      const auto header = parse_header(all.subspan(at).first<frame_header_bytes>());
      if (!header) break;
      if (header->kind == FrameKind::reply) what(*header);
      at += frame_header_bytes + header->body_bytes + header->attachment_bytes;
    }
  }

  const int fd_;
  std::uint16_t port_ = 0;
  Bytes heard_;
};

template <auto F>
FrameHeader request_of(std::uint64_t id = 1) {
  FrameHeader header;
  header.id = id;
  header.method = method_number<F>;
  return header;
}
Bytes frame_of(FrameHeader header, std::span<const std::byte> body) {
  header.body_bytes = static_cast<std::uint32_t>(body.size());
  Bytes frame;
  encode(header, frame.grow(frame_header_bytes));
  frame.append(body);
  return frame;
}
Bytes array_of_arrays(std::size_t elements) {
  Bytes body;
  MsgpackWriter writer(body);
  writer.array(1);
  writer.array(elements);
  for (std::size_t i = 0; i < elements; ++i) writer.array(0);
  return body;
}
Result<Identity> ask_for_alice(const Credentials& shown) {
  if (shown.token == "alice") return Identity{"alice"};
  return fail(Errc::unauthenticated, "who?");
}

class Strangers : public testing_support::RpcTest {
 protected:
  void start(ServerOptions options) {
    serve<strangers::wides, strangers::texts, strangers::note, strangers::deaf, shop::echo, shop::nothing>(
        std::move(options));
    strangers::wide_calls = 0;
    strangers::text_calls = 0;
    strangers::small_calls_before = -1;
  }
  // Reads until the server closes; returns its reason.
  std::optional<Errc> end_of(Stranger& stranger) {
    run_until([&] { return stranger.is_left(); });
    return stranger.why();
  }
  void expect_service() {
    with_client(address, [](Client& client) -> asio::awaitable<void> {
      EXPECT_TRUE(co_await client.call<shop::nothing>());
    });
  }
};

TEST_P(Strangers, a_request_that_becomes_too_much_does_not_run) {
  start({});
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    const std::vector<std::vector<int>> empty(100'000);  // 100 KB here, 77 MB at the server
    const auto refused = co_await client.call_by_name<std::uint64_t>("strangers.wides", empty);
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::too_large) << refused.error().what;
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
  EXPECT_EQ(strangers::wide_calls, 0);
}

TEST_P(Strangers, nobody_unknown_may_send_more_than_a_little) {
  ServerOptions options;
  options.authentication.authenticate = ask_for_alice;
  start(std::move(options));
  for (const bool attachment : {false, true}) {
    Stranger stranger(address);
    FrameHeader header = request_of<shop::echo>();
    (attachment ? header.attachment_bytes : header.body_bytes) = 1 << 20;
    Bytes bytes;
    encode(header, bytes.grow(frame_header_bytes));
    stranger.connects().says(bytes.span());
    EXPECT_EQ(end_of(stranger), Errc::unauthenticated);
  }
  ConnectOptions known = connect_options();
  known.token = [] { return std::string("alice"); };
  run([&]() -> asio::awaitable<void> {
    auto client = co_await connect(address, known);
    const std::string text(1 << 20, 'x');
    EXPECT_EQ((co_await client->call<shop::echo>(text)).value_or(""), text);
  });
}

TEST_P(Strangers, what_all_hold_together_is_bounded) {
  ServerOptions options;
  options.limits.max_server_bytes = 4 << 20;
  start(std::move(options));
  FrameHeader header = request_of<shop::echo>();
  header.body_bytes = 3 << 20;
  Bytes bytes;
  encode(header, bytes.grow(frame_header_bytes));
  std::memset(bytes.grow(3 << 19), 0, 3 << 19);
  Stranger first(address), second(address), third(address);
  for (Stranger* each : {&first, &second, &third}) each->connects().says(bytes.span());
  run_until([&] { return first.is_left() || second.is_left() || third.is_left(); });
  int left = 0;
  for (Stranger* each : {&first, &second, &third})
    if (each->is_left()) {
      ++left;
      EXPECT_EQ(each->why(), Errc::overloaded);
    }
  EXPECT_EQ(left, 1);
  expect_service();
}

// More than the server can hold, and slower to run than to send.
TEST_P(Strangers, a_crowd_that_asks_for_too_much_leaves_room_for_others) {
  constexpr std::size_t clients = 12, requests = 20, elements = 50'000;
  ServerOptions options;
  options.limits.max_server_bytes = 8 << 20;
  start(std::move(options));
  Bytes body;
  MsgpackWriter writer(body);
  writer.array(1);
  writer.array(elements);
  for (std::size_t i = 0; i < elements; ++i) writer.text("");
  Bytes all;
  for (std::uint64_t id = 1; id <= requests; ++id)
    all.append(frame_of(request_of<strangers::texts>(id), body.span()).span());
  ASSERT_GT(clients * all.size(), std::size_t{8} << 20);
  with_client(address, [&](Client& other) -> asio::awaitable<void> {
    struct Asker {
      explicit Asker(const std::string& at) : stranger(at) {}
      Stranger stranger;
      std::size_t said = 0;
    };
    std::list<Asker> crowd;
    for (std::size_t i = 0; i < clients; ++i) crowd.emplace_back(address).stranger.connects();
    while (strangers::text_calls < clients * requests) {
      for (auto& [stranger, said] : crowd) {
        said += stranger.says(all.span().subspan(said));
        EXPECT_FALSE(stranger.is_left());
      }
      const auto served = co_await other.call<shop::nothing>();
      EXPECT_TRUE(served) << served.error().what;
      if (testing::Test::HasFailure()) co_return;
    }
  });
}

TEST_P(Strangers, streams_that_wait_are_charged_what_it_takes_to_keep_them) {
  constexpr int clients = 4, streams = 200;  // 2.4 MB
  ServerOptions options;
  options.limits.max_server_bytes = 1 << 20;
  start(std::move(options));
  Bytes body, all;
  MsgpackWriter(body).array(0);
  for (std::uint64_t id = 1; id <= streams; ++id) {
    FrameHeader header = request_of<strangers::deaf>(id);
    header.flags = FrameFlag::streaming;
    all.append(frame_of(header, body.span()).span());
  }
  std::list<Stranger> crowd;
  for (int i = 0; i < clients; ++i) crowd.emplace_back(address).connects().says(all.span());
  const auto refused = [&] {
    int count = 0;
    for (Stranger& each : crowd) {
      EXPECT_FALSE(each.is_left());
      count += each.replies_that_say(Errc::overloaded);
    }
    return count;
  };
  run_until([&] { return refused() > clients * streams / 2; });
  EXPECT_LT(refused(), clients * streams);
  crowd.clear();
  run_until([this] { return server->open() == 0; });
  expect_service();
}

TEST_P(Strangers, an_item_is_no_larger_than_its_window) {
  ServerOptions options;
  options.limits.stream_window_bytes = 100'000;
  start(std::move(options));
  Stranger stranger(address);
  FrameHeader header = request_of<strangers::deaf>();
  header.flags = FrameFlag::streaming;
  Bytes body;
  MsgpackWriter(body).array(0);
  Bytes bytes = frame_of(header, body.span());
  FrameHeader item;
  item.kind = FrameKind::item;
  item.id = 1;
  item.body_bytes = 100'001;
  encode(item, bytes.grow(frame_header_bytes));
  stranger.connects().says(bytes.span());
  EXPECT_EQ(end_of(stranger), Errc::too_large);
}

TEST_P(Strangers, who_does_nothing_makes_room_for_who_does) {
  ServerOptions options;
  options.limits.max_connections = 2;
  options.limits.peer = {.first_frame = std::chrono::milliseconds(40),
                         .frame = std::chrono::milliseconds(40),
                         .keepalive = std::chrono::milliseconds(40)};
  start(std::move(options));
  Stranger silent(address), cut_off(address);
  silent.connects();
  cut_off.connects().says(as_bytes("Wr\x01"));
  EXPECT_EQ(end_of(silent), Errc::deadline_exceeded);
  EXPECT_EQ(end_of(cut_off), Errc::deadline_exceeded);
  run_until([this] { return server->open() == 0; });  // whether they close or not
  expect_service();
}

struct SilentCrowd : Strangers {
  static constexpr std::uint32_t seats = 4;
  std::list<Stranger> silent;
  void start_with_few_seats(ServerOptions options = {}) {
    options.limits.max_connections = seats;
    start(std::move(options));
  }
  void silent_ones_come() {
    for (std::uint32_t i = 0; i < 5 * seats; ++i) silent.emplace_back(address).connects();
  }
};

TEST_P(SilentCrowd, leaves_first_however_often_it_comes) {
  start_with_few_seats();
  for (int round = 0; round < 5; ++round) {
    silent.clear();
    silent_ones_come();
    expect_service();
  }
}

// Connections are dealt in turn, so the oldest of three is in the other thread than the fourth.
TEST_P(SilentCrowd, makes_room_for_a_client_of_another_thread) {
  ServerOptions options;
  options.threads = 2;
  options.limits.max_connections = 3;
  start(std::move(options));
  for (std::uint32_t i = 1; i <= 3; ++i) {
    silent.emplace_back(address).connects();
    run_until([&] { return server->open() == i; });
  }
  expect_service();
  run_until([&] { return silent.front().is_left(); });
  EXPECT_FALSE(silent.back().is_left());
}

TEST_P(SilentCrowd, disturbs_no_client_that_has_called) {
  start_with_few_seats();
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<shop::nothing>());
    silent_ones_come();
    while (server->stats().refused < 4 * seats) co_await asio::post(io, asio::use_awaitable);
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
}

TEST_P(SilentCrowd, is_told_why_it_has_to_leave) {
  start_with_few_seats();
  silent_ones_come();
  EXPECT_EQ(end_of(silent.front()), Errc::overloaded);
}

TEST_P(SilentCrowd, may_say_anything_but_who_it_is) {
  ServerOptions options;
  options.authentication.authenticate = ask_for_alice;
  start_with_few_seats(std::move(options));
  FrameHeader ping;
  ping.kind = FrameKind::ping;
  const Bytes bytes = frame_of(ping, {});
  silent_ones_come();
  for (Stranger& each : silent) each.says(bytes.span());
  ConnectOptions known = connect_options();
  known.token = [] { return std::string("alice"); };
  run([&]() -> asio::awaitable<void> {
    auto client = co_await connect(address, known);
    EXPECT_TRUE(co_await client->call<shop::nothing>());
  });
}

TEST_P(SilentCrowd, leaves_a_server_without_descriptors_first) {
  start({});
  Stranger quiet(address), caller(address);
  quiet.connects();
  run_until([&] { return server->open() == 1; });
  std::vector<int> all;
  for (int fd = 0; (fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) all.push_back(fd);
  ASSERT_EQ(errno, EMFILE);
  Bytes body;
  MsgpackWriter(body).array(0);
  caller.connects().says(frame_of(request_of<shop::nothing>(), body.span()).span());
  run_until([&] { return caller.is_left() || caller.is_answered(); });
  for (const int fd : all) close(fd);
  EXPECT_TRUE(caller.is_answered());
  EXPECT_TRUE(quiet.is_left());
}
INSTANTIATE_TEST_SUITE_P(Over, SilentCrowd, testing::Values("tcp"), testing_support::transport_name);

TEST_P(Strangers, a_quiet_client_keeps_its_connection) {
  ServerOptions options;
  options.limits.peer.first_frame = options.limits.peer.keepalive = std::chrono::milliseconds(40);
  start(std::move(options));
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    for (int waits = 0; waits < 3; ++waits) {  // long enough to give up another client
      Stranger silent(address);
      silent.connects();
      while (!silent.is_left()) co_await asio::post(io, asio::use_awaitable);
    }
    EXPECT_TRUE(co_await client.call<shop::nothing>());
  });
}

TEST_P(Strangers, expensive_requests_take_turns_with_those_of_others) {
  constexpr int flood = 60;
  start({});
  with_client(address, [this](Client& client) -> asio::awaitable<void> {
    EXPECT_TRUE(co_await client.call<shop::nothing>());
    const Bytes body = array_of_arrays(3500);  // 2.7 MB at the server
    Bytes all;
    for (int i = 0; i < flood; ++i)
      all.append(
          frame_of(request_of<strangers::wides>(static_cast<std::uint64_t>(i) + 1), body.span()).span());
    Stranger stranger(address);
    stranger.connects().says(all.span());
    EXPECT_TRUE(co_await client.call<strangers::note>());
    while (strangers::wide_calls < flood) co_await asio::post(io, asio::use_awaitable);
  });
  EXPECT_GE(strangers::small_calls_before, 0);
  EXPECT_LT(strangers::small_calls_before, flood / 4);
}

TEST_P(Strangers, a_server_without_descriptors_says_so_and_goes_on) {
  start({});
  Stranger stranger(address);
  std::vector<int> all;
  for (int fd = 0; (fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0;) all.push_back(fd);
  ASSERT_EQ(errno, EMFILE);
  stranger.connects();
  const std::optional<Errc> why = end_of(stranger);
  for (const int fd : all) close(fd);
  EXPECT_EQ(why, Errc::overloaded);
  expect_service();
}

INSTANTIATE_TEST_SUITE_P(Over, Strangers, testing::Values("tcp"), testing_support::transport_name);

class TlsStrangers : public testing_support::RpcTest {
 protected:
  // A call over a new connection, which takes several turns for its handshake.
  void expect_service() {
    with_client(address, [](Client& client) -> asio::awaitable<void> {
      const auto answer = co_await client.call<shop::nothing>();
      EXPECT_TRUE(answer) << answer.error().what;
    });
  }
};

TEST_P(TlsStrangers, silent_handshakes_leave_first) {
  serve<shop::nothing>();
  std::list<Stranger> silent;
  for (std::size_t i = 0; i < transport::HandshakePlaces::most + 5; ++i)
    silent.emplace_back(address).connects();
  expect_service();
  run_until([&] { return silent.front().is_left(); });
}
Bytes client_hello() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  BIO* const out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(ssl.get());
  SSL_do_handshake(ssl.get());
  char* text = nullptr;
  const long count = BIO_get_mem_data(out, &text);
  Bytes bytes;
  bytes.append(as_bytes(std::string_view(text, static_cast<std::size_t>(count))));
  return bytes;
}

TEST_P(TlsStrangers, handshakes_that_go_on_outlive_silent_ones) {
  serve<shop::nothing>();
  const Bytes hello = client_hello();
  Stranger greeted(address);
  greeted.connects().says(hello.span());
  run_until([&] { return greeted.is_left() || greeted.has_heard(); });
  std::list<Stranger> silent;
  for (std::size_t i = 0; i < 2 * transport::HandshakePlaces::most; ++i)
    silent.emplace_back(address).connects();
  expect_service();
  EXPECT_TRUE(silent.front().is_left());
  EXPECT_FALSE(greeted.is_left());
}

TEST_P(TlsStrangers, greetings_without_more_leave_too) {
  serve<shop::nothing>();
  const Bytes hello = client_hello();
  std::list<Stranger> greeted;
  for (std::size_t i = 0; i < transport::HandshakePlaces::most; ++i) {
    Stranger& one = greeted.emplace_back(address);
    one.connects().says(hello.span());
    run_until([&] { return one.is_left() || one.has_heard(); });
  }
  expect_service();
  EXPECT_TRUE(greeted.front().is_left());
}
INSTANTIATE_TEST_SUITE_P(Over, TlsStrangers, testing::Values("tls"), testing_support::transport_name);

class RdmaTlsStrangers : public TlsStrangers {};

TEST_P(RdmaTlsStrangers, silent_handshakes_leave_first) {
  serve<shop::nothing>();
  const rdma::Endpoint there(rdma::testing_support::test_address().address(), parse_address(address)->port);
  std::list<rdma::Stream> silent;
  std::size_t connected = 0;
  for (std::size_t i = 0; i < transport::HandshakePlaces::most; ++i) {
    rdma::async_connect(silent.emplace_back(*engine), there, rdma::StreamSettings(),
                        [&](std::error_code error) { connected += !error; });
  }
  run_until([&] { return connected == silent.size(); });
  expect_service();
}
INSTANTIATE_TEST_SUITE_P(Over, RdmaTlsStrangers, testing::Values("rdma+tls"),
                         testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
