// Peers of the RDMA port that claim bytes which they never wrote, over plain verbs: the server sees zeros,
// and never an earlier client's requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "rdma/stream/receive_size.hpp"
#include "tests/kv/rdma_client.hpp"
#include "tests/rdma/raw_peer.hpp"

namespace weir::kv::testing {
namespace {

using rdma::RegisterXferMemory;
using rdma::testing_support::RawPeer;
using ::testing::HasSubstr;
using ::testing::Not;

// Writes and claims whatever it likes; replies land in its own memory, one behind the other.
class LyingClient {
 public:
  explicit LyingClient(std::uint16_t port) {
    peer_.connect(rdma::Endpoint(asio::ip::address_v4::loopback(), port));
    theirs_ = peer_.announcement();
    peer_.send(rdma::encode(peer_.own_buffer()));
  }
  // Writes `text` behind what was claimed so far, and claims `bytes`.
  void claim(std::string_view text, std::uint32_t bytes) {
    std::ranges::copy(std::as_bytes(std::span(text)), peer_.memory().begin());
    peer_.write_with_imm(theirs_, claimed_, text.size(), bytes);
    claimed_ += bytes;
  }
  void say(std::string_view text) { claim(text, static_cast<std::uint32_t>(text.size())); }
  void poll() { peer_.poll(); }
  std::string replies() {
    peer_.poll();
    std::size_t bytes = 0;
    for (const std::uint32_t each : peer_.immediates()) bytes += each;
    const auto at = peer_.memory().subspan(RawPeer::memory_bytes / 2, bytes);
    return {reinterpret_cast<const char*>(at.data()), bytes};
  }
  std::string replies_of(std::size_t bytes) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (replies().size() < bytes && std::chrono::steady_clock::now() < limit) std::this_thread::yield();
    return replies();
  }

 private:
  RawPeer peer_{[] {}};
  RegisterXferMemory theirs_;
  std::uint64_t claimed_ = 0;
};

void until_alone(RunningServer& server) {
  while (server.run([](Server& s) { return s.clients.size(); }) != 0) std::this_thread::yield();
}

// The server parses what a peer claims as it arrives: byte by byte it would reach the end of each request
// that the previous client left, the first of which is its AUTH.
TEST(RdmaBadPeer, does_not_become_the_client_before_it_by_claiming_its_bytes) {
  Settings settings = rdma_settings();
  settings.requirepass = "correct horse";
  RunningServer server(settings);
  const std::string auth = encode({"AUTH", "correct horse"});
  {
    RdmaClient client(port_of(server, "rdma"));
    ASSERT_EQ(client.exactly(auth, 5), "+OK\r\n");
    ASSERT_EQ(client.exactly(encode({"SET", "secret", "their value"}), 5), "+OK\r\n");
  }
  until_alone(server);

  LyingClient liar(port_of(server, "rdma"));
  for (std::size_t i = 0; i < auth.size() + 200; ++i) {
    liar.claim("", 1);
    liar.poll();
  }
  // All the rest of the announced buffer. A NUL hides the rest of an inline command, so this is one that
  // never ends: the server keeps the bytes, or closes a client that sends so many without a password.
  const auto claimed = static_cast<std::size_t>(rdma::ReceiveSize::least_bytes);
  liar.claim("", static_cast<std::uint32_t>(claimed - auth.size() - 200));
  struct Seen {
    bool all = true;
    bool authenticated = false;
  };
  const auto look = [claimed](Server& s) {
    Seen seen;
    for (const auto& [id, client] : s.clients)
      seen = {client->input().unexecuted_bytes() >= claimed, client->authenticated()};
    return seen;
  };
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  Seen seen = server.run(look);
  while (!seen.all && std::chrono::steady_clock::now() < limit) seen = server.run(look);
  EXPECT_TRUE(seen.all);
  EXPECT_FALSE(seen.authenticated);
  EXPECT_THAT(liar.replies(), Not(HasSubstr("+OK")));
}

TEST(RdmaBadPeer, stores_zeros_where_it_claims_a_value_that_it_never_wrote) {
  RunningServer server(rdma_settings());
  {
    RdmaClient client(port_of(server, "rdma"));
    ASSERT_EQ(client.exactly(encode({"SET", "secret", std::string(9000, 's')}), 5), "+OK\r\n");
  }
  until_alone(server);

  constexpr std::uint32_t claimed = 8000;
  LyingClient liar(port_of(server, "rdma"));
  liar.say("*3\r\n$3\r\nSET\r\n$4\r\nmine\r\n$8000\r\n");
  liar.claim("", claimed);
  liar.say("\r\n");
  EXPECT_EQ(liar.replies_of(5), "+OK\r\n");
  EXPECT_EQ(server.connect().call({"GET", "mine"}), "$8000\r\n" + std::string(claimed, '\0') + "\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
