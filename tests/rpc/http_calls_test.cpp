// curl against a server, over each transport that carries HTTP, beside clients of the library and attackers.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <list>
#include <thread>

#include "tests/rpc/rpc_fixture.hpp"
#include "transport/owned_fd.hpp"

namespace weir::rpc {
namespace {

using namespace testing_support;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

struct Got {
  int status = 0;  // 0: no response
  std::string body;
};

class HttpCalls : public RpcTest {
 protected:
  static ServerOptions with_http() {
    ServerOptions options;
    options.http = HttpOptions();
    return options;
  }
  // Runs curl while the server runs.
  Got curl(const std::string& path, const std::string& options = {}) {
    return curl_at(where() + path + "'", options);
  }
  Got post(const std::string& function, const std::string& json, const std::string& options = {}) {
    return curl("/" + function, options + " --data-binary '" + json + "'");
  }
  Got curl_at(const std::string& at, const std::string& options) {
    Got got;
    std::atomic<bool> ended = false;
    std::thread client([&] {
      got = ran("curl -sS --max-time 20 -w '\n%{http_code}' " + options + " " + at);
      ended = true;
      asio::post(io, [] {});
    });
    run_until([&] { return ended.load(); });
    client.join();
    return got;
  }

 private:
  std::string where() const {
    const auto at = parse_address(address);
    if (over("unix")) return "--unix-socket " + at->path + " 'http://localhost";
    const std::string port = std::to_string(at->port);
    if (!over("tls")) return "'http://127.0.0.1:" + port;
    return "--cacert " + test::certificates().certificate("ca") + " --cert " +
           test::certificates().certificate("client") + " --key " + test::certificates().key("client") +
           " --resolve server:" + port + ":127.0.0.1 'https://server:" + port;
  }
  static Got ran(const std::string& command) {
    std::string printed;
    std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    char part[4096];
    for (std::size_t n = 0; (n = fread(part, 1, sizeof part, pipe)) > 0;) printed.append(part, n);
    pclose(pipe);
    const std::size_t line = printed.rfind('\n');
    return {std::atoi(printed.c_str() + line + 1), printed.substr(0, line)};
  }
};

TEST_P(HttpCalls, give_results_and_errors_as_json) {
  serve<shop::add, shop::echo, shop::divide, shop::divide_later, shop::throws, shop::nothing,
        shop::place_later, shop::reflect, shop::wait_for_ever>(with_http());
  struct Row {
    std::string function, json;
    int status;
    std::string body;
  };
  const Row rows[] = {
      {"shop.add", "[2, 3]", 200, "5\n"},
      {"shop.echo", "\"tea \\u00e9\"", 200, "\"tea \xc3\xa9\"\n"},
      {"shop.nothing", "", 200, "null\n"},
      {"shop.divide_later", "[7, 2]", 200, "3\n"},
      {"shop.place_later", R"({"id": 7, "items": [{"name": "nut"}], "currency": "dollar"})", 200,
       R"("items":[{"name":"nut","count":1}])"},
      {"shop.divide", "[1, 0]", 400, R"({"error":"bad_arguments")"},
      {"shop.throws", "\"secret\"", 500, R"({"error":"failed","message":"shop.throws threw an exception)"},
      {"shop.add", "[2]", 400, R"({"error":"bad_arguments")"},
      {"shop.add", "[2, ", 400, "is no JSON"},
      {"shop.echo", "\"\xff\"", 400, "is no JSON"},
      {"shop.place_later", R"({"it": 7})", 400, "has no field 'it'"},
      {"shop.sell", "", 404, R"({"error":"unknown_method")"},
      {"shop.reflect", "", 200, "0\n"}};
  for (const Row& row : rows) {
    const Got got = post(row.function, row.json);
    EXPECT_EQ(got.status, row.status) << row.function << " " << row.json << " " << got.body;
    EXPECT_THAT(got.body, HasSubstr(row.body)) << row.function;
  }
  const Got late = post("shop.wait_for_ever", "", "-H 'Weir-Timeout: 0.05'");
  EXPECT_EQ(late.status, 504) << late.body;
  EXPECT_EQ(curl("/calls").status, 404);
  EXPECT_EQ(curl("/health").body, "{\"status\":\"serving\"}\n");
}

TEST_P(HttpCalls, and_calls_of_the_library_share_an_address) {
  serve<shop::add, shop::sized>(with_http());
  for (int turn = 0; turn < 2; ++turn) {
    with_client(address, [](Client& client) -> asio::awaitable<void> {
      EXPECT_EQ((co_await client.call<shop::add>(2, 3)).value_or(0), 5);
      const auto large = co_await client.call<shop::sized>(3u << 20);
      EXPECT_EQ(large ? large->size() : 0, 3u << 20);
    });
    EXPECT_EQ(post("shop.add", "[2, 3]").body, "5\n");
    EXPECT_EQ(post("shop.sized", "2000000").body.size(), 2'000'003u);  // with quotes and an end of line
  }
}

TEST_P(HttpCalls, go_over_one_connection_one_after_another) {
  serve<shop::add>(with_http());
  const Got twice = post("shop.{add,add}", "[2, 3]");  // two requests of one curl
  EXPECT_EQ(twice.body, "5\n\n2005\n");
  EXPECT_EQ(server->stats().connections, 1u);
}

TEST_P(HttpCalls, are_no_calls_where_the_server_does_not_say_so) {
  serve<shop::add>();
  EXPECT_NE(post("shop.add", "[2, 3]").status, 200);
}

TEST_P(HttpCalls, are_each_authenticated_and_authorised) {
  ServerOptions options = with_http();
  options.authentication.authenticate = [](const Credentials& shown) -> Result<Identity> {
    if (shown.token == "good" || shown.token == "guest") return Identity{shown.token};
    return fail(Errc::unauthenticated, "no such token");
  };
  options.authentication.authorise = [](const Identity& who, std::string_view) -> Result<void> {
    if (who.name == "guest") return fail(Errc::denied, "guests may not call");
    return {};
  };
  serve<shop::add>(options);
  EXPECT_EQ(post("shop.add", "[2, 3]", "-H 'Authorization: Bearer good'").status, 200);
  EXPECT_EQ(post("shop.add", "[2, 3]").status, 401);
  EXPECT_EQ(curl("/", "-H 'Authorization: Bearer guest'").status, 403);
  const Got denied = post("shop.add", "{\"types\": 1}", "-H 'Authorization: Bearer guest'");
  EXPECT_EQ(denied.status, 403) << "its JSON is not looked at, and no types are told";
}

TEST_P(HttpCalls, are_seen_by_interceptors_and_end_when_the_server_drains) {
  ServerOptions options = with_http();
  options.stats = true;
  serve<shop::add>(options);
  EXPECT_EQ(post("shop.add", "[2, 3]").status, 200);
  EXPECT_THAT(curl("/metrics").body, HasSubstr("weir_rpc_calls_total{method=\"shop.add\"} 1\n"));
  EXPECT_THAT(curl("/calls").body, HasSubstr("\"name\": \"shop.add\""));
  server->drain();
  run_until([&] { return server->open() == 0; });
}

INSTANTIATE_TEST_SUITE_P(Over, HttpCalls, testing::Values("tcp", "unix", "tls"), transport_name);

// A socket that says what the test wants.
class Attacker {
 public:
  explicit Attacker(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(parse_address(address)->port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
  }
  Attacker& says(std::string_view text) {
    send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    return *this;
  }
  // Whether the server has closed; keeps what it said.
  bool is_left() {
    char part[4096];
    for (;;) {
      const ssize_t got = recv(fd_.get(), part, sizeof part, 0);
      if (got <= 0) return got == 0 || errno != EAGAIN;
      heard_.append(part, static_cast<std::size_t>(got));
    }
  }
  const std::string& heard() const { return heard_; }

 private:
  OwnedFd fd_;
  std::string heard_;
};

using HttpAttackers = HttpCalls;

TEST_P(HttpAttackers, with_half_requests_do_not_keep_others_out) {
  ServerOptions options = with_http();
  options.limits.max_connections = 8;
  serve<shop::add>(options);
  std::list<Attacker> crowd;
  for (const std::string_view half :
       {"", "P", "POST /shop.add HTTP/1.1\r\n",
        "POST /shop.add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n[2"})
    for (int i = 0; i < 8; ++i) crowd.emplace_back(address).says(half);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post("shop.add", "[2, 3]").body, "5\n");
  with_client(address, [](Client& client) -> asio::awaitable<void> {
    EXPECT_EQ((co_await client.call<shop::add>(2, 3)).value_or(0), 5);
  });
}

TEST_P(HttpAttackers, that_send_half_a_request_lose_their_connection) {
  ServerOptions options = with_http();
  options.limits.peer.first_frame = options.limits.peer.frame = options.limits.peer.keepalive = 100ms;
  options.limits.end.linger = 100ms;
  serve<shop::add>(options);
  struct Row {
    std::string_view said, heard;
  };
  const std::string head = "POST /shop.add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 6\r\n\r\n";
  const std::string body_missing = head + "[2";
  const std::string idle = head + "[2, 3]";
  const std::string half_follows = idle + "POST /sh";
  for (const auto& [said, heard] :
       {Row{"POST /shop.add HT", "HTTP/1.1 408 "}, Row{body_missing, "HTTP/1.1 408 "},
        Row{idle, "HTTP/1.1 200 "}, Row{half_follows, "HTTP/1.1 200 "}}) {
    Attacker attacker(address);
    attacker.says(said);
    run_until([&] { return attacker.is_left(); });
    EXPECT_THAT(attacker.heard(), StartsWith(heard)) << said;
  }
  run_until([&] { return server->open() == 0; });
}

TEST_P(HttpAttackers, that_do_not_read_answers_are_held_back) {
  ServerOptions options = with_http();
  options.limits.peer.keepalive = 200ms;
  serve<shop::sized, shop::add>(options);
  Attacker attacker(address);
  for (int i = 0; i < 64; ++i)
    attacker.says("POST /shop.sized HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 7\r\n\r\n4000000");
  EXPECT_EQ(post("shop.add", "[2, 3]").body, "5\n");
  run_until([&] { return server->open() == 0; });
  EXPECT_LE(server->stats().connections, 2u);
}

TEST_P(HttpAttackers, that_go_away_cancel_what_runs_for_them) {
  serve<shop::wait_for_ever>(with_http());
  const shop::Waits before = shop::waits;
  {
    Attacker attacker(address);
    attacker.says("POST /shop.wait_for_ever HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    run_until([&] { return shop::waits.started > before.started; });
  }
  run_until([&] { return shop::waits.cancelled > before.cancelled; });
}

INSTANTIATE_TEST_SUITE_P(Over, HttpAttackers, testing::Values("tcp"), transport_name);

}  // namespace
}  // namespace weir::rpc
