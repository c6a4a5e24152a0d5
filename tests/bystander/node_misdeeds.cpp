// A bad node of the cluster behind a gateway. The attacker is that node, and the clients whose requests lead
// the gateway to it. The test keeps the node's place in the cluster, so that each attacker in turn can be it.
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "tests/bystander/misdeeds.hpp"
#include "tests/bystander/requests.hpp"

namespace weir::bystander::nodes {
namespace {

using asio::ip::tcp;

constexpr int askers = 8;
constexpr std::size_t piece_bytes = 100'000;

// What the node says to a request that is not HELLO. After `begins` comes `repeats`, `pieces` times.
struct Way {
  std::string_view begins;
  std::string_view repeats = {};
  int pieces = 0;
  bool hangs_up = false;
};

constexpr Way ways[] = {
    {""},
    {"", "", 0, true},
    {"\x01\x02?\r\n"},
    {"$100\r\nhalf"},
    {"$100\r\nhalf", "", 0, true},
    {"", "nonsense ", 40},
    {"+", "x", 40},
    {"$536870912\r\n", "x", 40},
    {"*4294967295\r\n", ":1\r\n", 40},
    {"", "*1\r\n", 40},
    {"+one\r\n", "+more\r\n", 40},
    {"", ">2\r\n+a\r\n+b\r\n", 40},
    {"-MOVED 866 127.0.0.1:1\r\n", "-MOVED 866 127.0.0.1:1\r\n", 1},
    {"-ASK 866 127.0.0.1:1\r\n"},
    {"-MOVED 99999 nowhere\r\n"},
    {"-LOADING\r\n", "-TRYAGAIN\r\n", 1},
};

std::string piece_of(std::string_view text) {
  std::string piece;
  while (piece.size() < piece_bytes) piece += text;
  return piece;
}

asio::awaitable<bool> say(tcp::socket& peer, std::string text) {
  const auto bytes = asio::buffer(text);
  asio::error_code failed;
  co_await asio::async_write(peer, bytes, asio::redirect_error(asio::use_awaitable, failed));
  co_return !failed;
}

asio::awaitable<void> answer_badly(Attack& attack, tcp::socket peer) {
  char asked[4096];
  const auto room = asio::buffer(asked);
  for (;;) {
    asio::error_code failed;
    const std::size_t count =
        co_await peer.async_read_some(room, asio::redirect_error(asio::use_awaitable, failed));
    if (failed) co_return;
    const bool greeted = std::string_view(asked, count).find("HELLO") != std::string_view::npos;
    // One that never greets is not asked anything.
    if (greeted && attack.below(4) != 0) {
      const bool said = co_await say(peer, "*0\r\n");
      if (!said) co_return;
      continue;
    }
    const Way& way = ways[attack.below(std::size(ways))];
    attack.did();
    bool said = co_await say(peer, std::string(way.begins));
    const std::string piece = way.pieces > 0 ? piece_of(way.repeats) : "";
    for (int i = 0; said && i < way.pieces; ++i) said = co_await say(peer, piece);
    if (!said || way.hangs_up) co_return;
    // The gateway waits for a node for seconds, and has one connection to it; so most come to an end before.
    if (attack.below(32) == 0) continue;
    asio::steady_timer timer(attack.io, std::chrono::milliseconds(attack.below(30)));
    co_await timer.async_wait(asio::use_awaitable);
    co_return;
  }
}

asio::awaitable<void> accept_all(Attack& attack) {
  tcp::acceptor place(attack.io, tcp::v4(), std::atoi(std::getenv(listening_variable)));
  for (;;) {
    tcp::socket peer = co_await place.async_accept(asio::use_awaitable);
    asio::co_spawn(attack.io, answer_badly(attack, std::move(peer)), asio::detached);
  }
}

// Asks for what only the bad node has.
asio::awaitable<void> ask_for_it(Attack& attack) {
  const std::string request = "GET " + std::string(key) + "\r\n";
  for (;;) {
    const LinePtr line = co_await dial(attack.io, attack.protocol, attack.address);
    const std::string shown = credentials(attack.protocol);
    bool sent = line != nullptr;
    if (sent) sent = co_await line->write(shown);
    while (sent) {
      std::string requests;
      for (std::uint64_t i = attack.below(20) + 1; i > 0; --i) requests += request;
      sent = co_await line->write(requests);
      if (!sent) break;
      const std::string replies = co_await line->read();
      sent = !replies.empty() && attack.below(8) != 0;
    }
    asio::steady_timer timer(attack.io, std::chrono::milliseconds(1));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

}  // namespace

asio::awaitable<void> be_bad_node(Attack& attack) {
  const auto rethrow = [](const std::exception_ptr& thrown) {
    if (thrown) std::rethrow_exception(thrown);
  };
  for (int i = 0; i < askers; ++i) asio::co_spawn(attack.io, ask_for_it(attack), rethrow);
  co_await accept_all(attack);
}

}  // namespace weir::bystander::nodes
