// Streams between processes, one of which is killed, stopped for a while, or forks.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <future>
#include <random>

#include "tests/piped_child.hpp"
#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

// rsocket_peer, running; killed when destroyed.
class Peer {
 public:
  explicit Peer(const std::string& what) : child_({RSOCKET_PEER, what}) {
    const std::string said = child_.line();
    EXPECT_EQ(said.substr(0, 5), "port ");
    address_ = loopback(static_cast<std::uint16_t>(std::atoi(said.c_str() + 5)));
  }

  sockaddr_in address() const { return address_; }
  Rsocket connected() const {
    Rsocket socket = stream();
    EXPECT_EQ(connect(socket, address_), 0) << std::strerror(errno);
    return socket;
  }
  void kill() { child_.kill(); }

 private:
  test::PipedChild child_;
  sockaddr_in address_{};
};

// Bytes until the stream ends, and how it ended.
std::string drain(const Rsocket& socket) {
  for (;;) {
    const auto got = receive(socket, 65536);
    if (got.empty() || got.front() == '(') return got;
  }
}

TEST(RsocketProcess, bytes_go_through_another_process_and_back) {
  Peer peer("echo");
  Rsocket socket = peer.connected();
  const std::string all = pattern(3'000'000);
  auto sender = std::async(std::launch::async, [&] { return send(socket, all); });
  std::string got;
  while (got.size() < all.size()) got += receive(socket, 65536);
  EXPECT_EQ(sender.get(), static_cast<ssize_t>(all.size()));
  EXPECT_TRUE(got == all);
}

TEST(RsocketProcess, a_killed_peer_resets_the_reader_once_and_then_ends) {
  Peer peer("silent");
  Rsocket socket = peer.connected();
  auto reader = std::async(std::launch::async, [&] { return receive(socket, 1, MSG_PEEK); });
  peer.kill();
  EXPECT_EQ(reader.get(), words(ECONNRESET));
  EXPECT_EQ(receive(socket), words(ECONNRESET)) << "who peeks takes nothing";
  EXPECT_EQ(receive(socket), "");
  EXPECT_EQ(send(socket, "x"), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(RsocketProcess, a_killed_peer_wakes_who_polls) {
  Peer peer("silent");
  Rsocket socket = peer.connected();
  auto sleeper = std::async(std::launch::async, [&] { return poll(socket, POLLIN); });
  peer.kill();
  EXPECT_EQ(sleeper.get(), POLLIN | POLLERR | POLLHUP);
}

TEST(RsocketProcess, what_a_killed_peer_had_sent_can_still_be_read) {
  Peer peer("flood");
  Rsocket socket = peer.connected();
  EXPECT_EQ(poll(socket, POLLIN), POLLIN);
  peer.kill();
  EXPECT_EQ(poll(socket, 0), POLLERR | POLLHUP);
  EXPECT_NE(receive(socket).front(), '(');
  EXPECT_EQ(drain(socket), words(ECONNRESET));
}

TEST(RsocketProcess, killed_in_the_middle_of_a_stream_the_other_end_hears_of_it) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const char* what : {"flood", "echo"}) {
    for (int round = 0; round < 5; ++round) {
      Peer peer(what);
      Rsocket socket = peer.connected();
      const std::string chunk = pattern(10'000);
      auto sender = std::async(std::launch::async, [&] {
        if (std::string(what) == "flood") return ECONNRESET;
        while (send(socket, chunk) > 0) {
        }
        return errno;
      });
      const auto stop_after = std::uniform_int_distribution<std::size_t>(0, 2'000'000)(random);
      for (std::size_t got = 0; got < stop_after;) got += receive(socket, 65536).size();
      peer.kill();
      EXPECT_EQ(drain(socket), words(ECONNRESET)) << what;
      EXPECT_EQ(sender.get(), ECONNRESET) << what;
    }
  }
}

TEST(RsocketProcess, a_peer_that_exits_without_closing_ends_the_stream_well) {
  Peer peer("exit");
  Rsocket socket = peer.connected();
  EXPECT_EQ(receive(socket, 100, MSG_WAITALL), "bye");
  EXPECT_EQ(receive(socket), "");
}

TEST(RsocketProcess, the_address_of_a_killed_listener_refuses_and_can_be_bound_again) {
  Peer peer("silent");
  peer.kill();
  Rsocket client = stream();
  EXPECT_EQ(connect(client, peer.address()), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  Rsocket listener = stream();
  auto address = peer.address();
  ASSERT_EQ(::rbind(listener.get(), as_address(address), sizeof address), 0) << std::strerror(errno);
  ASSERT_EQ(::rlisten(listener.get(), 1), 0);
  EXPECT_EQ(connect(client, address), 0) << std::strerror(errno);
}

// A server that forks: its child gives up what it inherited, which the parent keeps.
TEST(RsocketProcess, a_child_closes_its_copies_and_the_parent_goes_on) {
  Pair pair;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    char byte;
    const bool unknown = ::rrecv(pair.client.get(), &byte, 1, 0) == -1 && errno == EBADF;
    const bool closed = ::rclose(pair.client.get()) == 0 && ::rclose(pair.server.get()) == 0;
    const bool gone = ::rclose(pair.client.get()) == -1 && errno == EBADF;
    ::_exit(unknown && closed && gone ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(send(pair.client, "still here"), 10);
  EXPECT_EQ(receive(pair.server), "still here");
}

#if !defined(__SANITIZE_THREAD__)  // which cannot follow a child of a process with threads
TEST(RsocketProcess, a_child_makes_connections_of_its_own) {
  Rsocket listener = listening();
  const auto at = name_of(listener);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int socket = ::rsocket(AF_INET, SOCK_STREAM, 0);
    auto to = at;
    const bool sent = socket >= 0 && ::rconnect(socket, as_address(to), sizeof to) == 0 &&
                      ::rsend(socket, "from the child", 14, 0) == 14 && ::rclose(socket) == 0;
    ::_exit(sent ? 0 : 1);
  }
  Rsocket server(::raccept(listener.get(), nullptr, nullptr));
  EXPECT_EQ(receive(server, 100, MSG_WAITALL), "from the child");
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

}  // namespace
}  // namespace weir::rsocket
