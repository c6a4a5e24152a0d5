// Two ends of a TLS session over a pair of sockets that do not block.
#include "transport/tls_session.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "tests/certificates.hpp"
#include "transport/owned_fd.hpp"

namespace weir::transport {
namespace {

using Needs = StreamStep::Needs;
using Bytes = std::vector<std::byte>;

const test::Certificates& all() { return test::certificates(); }

TlsFiles server_files(PeerCertificate asks = PeerCertificate::ignored) {
  return {.certificate = all().certificate("server"),
          .key = all().key("server"),
          .authorities = all().certificate("ca"),
          .peer = asks};
}

struct TlsSessionTest : testing::Test {
  void open(const TlsFiles& hub, const TlsFiles& peer, const std::string& name = {}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    server_fd = OwnedFd(ends[0]);
    client_fd = OwnedFd(ends[1]);
    server.emplace(*make_tls_context(TlsSide::server, hub), TlsSide::server, ends[0]);
    client.emplace(*make_tls_context(TlsSide::client, peer), TlsSide::client, ends[1], name);
  }
  // Until both are done or one has ended; what the client and the server need then.
  std::array<Needs, 2> shake_hands() {
    std::array<Needs, 2> now{Needs::readable, Needs::readable};
    for (int i = 0; i < 10; ++i) {
      now = {client->shake_hands().needs, server->shake_hands().needs};
      if (now[0] == Needs::over || now[1] == Needs::over) break;
    }
    return now;
  }
  static Bytes read_all(TlsSession& from, std::size_t most_at_once) {
    Bytes got, room(most_at_once);
    for (StreamStep step; (step = from.read(room)).needs == Needs::nothing;)
      got.insert(got.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(step.bytes));
    return got;
  }

  OwnedFd server_fd, client_fd;
  std::optional<TlsSession> server, client;
};

TEST_F(TlsSessionTest, carries_pieces_of_any_size_both_ways) {
  open(server_files(), {.authorities = all().certificate("ca")}, "server");
  EXPECT_EQ(shake_hands(), (std::array{Needs::nothing, Needs::nothing}));
  Bytes sent(300'000);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 / 3);
  for (TlsSession* const from : {&*client, &*server}) {
    TlsSession& to = from == &*client ? *server : *client;
    const std::span whole(sent);
    // Small pieces, one as long as several records, and small ones again.
    std::vector<std::span<const std::byte>> left = {whole.first(16), whole.subspan(16, 5),
                                                    whole.subspan(21, 250'000), whole.subspan(250'021)};
    Bytes got;
    while (!left.empty()) {
      StreamStep step = from->write(left);
      ASSERT_NE(step.needs, Needs::over) << from->why();
      while (step.bytes > 0) {
        const std::size_t taken = std::min(step.bytes, left.front().size());
        left.front() = left.front().subspan(taken);
        step.bytes -= taken;
        if (left.front().empty()) left.erase(left.begin());
      }
      const Bytes more = read_all(to, 1000);
      got.insert(got.end(), more.begin(), more.end());
    }
    EXPECT_EQ(got, sent);
  }
}

// A record arrives whole, so the socket has nothing more to say about its rest.
TEST_F(TlsSessionTest, says_that_it_holds_the_rest_of_a_record) {
  open(server_files(), {.authorities = all().certificate("ca")});
  shake_hands();
  const Bytes sent(1000, std::byte{7});
  const std::array<std::span<const std::byte>, 1> pieces{sent};
  ASSERT_EQ(client->write(pieces).bytes, 1000U);
  Bytes some(400);
  EXPECT_EQ(server->read(some).bytes, 400U);
  EXPECT_TRUE(server->holds_input());
  EXPECT_EQ(read_all(*server, 400).size(), 600U);
  EXPECT_FALSE(server->holds_input());
}

struct Trust {
  const char* what;
  const char* authority;         // that the client believes
  std::string name;              // that it expects
  const char* certificate;       // that it shows
  PeerCertificate asks;          // what the server wants
  bool client_holds, certified;  // the client is content; the server knows who it is
  const char* why = "";          // words of the end that is not content
};

TEST_F(TlsSessionTest, checks_the_other_end) {
  using enum PeerCertificate;
  const Trust rows[] = {
      {"the right name", "ca", "server", nullptr, ignored, true, false},
      {"another name", "ca", "elsewhere", nullptr, ignored, false, false, "ostname mismatch"},
      {"an address", "ca", "127.0.0.1", nullptr, ignored, false, false, "IP address mismatch"},
      {"another authority", "other-ca", "server", nullptr, ignored, false, false,
       "certificate is not accepted"},
      {"a client's certificate", "ca", "server", "client", required, true, true},
      {"none where one is wanted", "ca", "server", nullptr, required, true, false, "peer did not return"},
      {"one of another authority", "ca", "server", "stranger", required, true, false,
       "certificate is not accepted"},
      {"one that nobody asked for", "ca", "server", "client", ignored, true, false},
  };
  for (const Trust& row : rows) {
    SCOPED_TRACE(row.what);
    TlsFiles files{.authorities = all().certificate(row.authority)};
    if (row.certificate != nullptr)
      files.certificate = all().certificate(row.certificate), files.key = all().key(row.certificate);
    open(server_files(row.asks), files, row.name);
    const auto needs = shake_hands();
    EXPECT_EQ(needs[0] == Needs::nothing, row.client_holds) << client->why();
    EXPECT_EQ(server->is_peer_certified(), row.certified);
    const TlsSession& discontent = row.client_holds ? *server : *client;
    EXPECT_NE(discontent.why().find(row.why), std::string::npos) << discontent.why();
  }
}

TEST_F(TlsSessionTest, ends_without_a_signal_when_the_other_end_closes) {
  open(server_files(), {.authorities = all().certificate("ca")});
  shake_hands();
  server.reset();
  server_fd.close();
  const Bytes sent(1000);
  const std::array<std::span<const std::byte>, 1> pieces{sent};
  EXPECT_EQ(client->write(pieces).needs, Needs::over);  // and no SIGPIPE
  Bytes room(100);
  EXPECT_EQ(client->read(room).needs, Needs::over);
}

TEST_F(TlsSessionTest, ends_when_the_other_end_speaks_no_tls) {
  open(server_files(), {.authorities = all().certificate("ca")});
  ASSERT_EQ(send(client_fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
  EXPECT_EQ(server->shake_hands().needs, Needs::over);
  EXPECT_NE(server->why(), "");
}

}  // namespace
}  // namespace weir::transport
