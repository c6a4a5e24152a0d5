// Output to many sockets in one round reaches each whole and in order, even if a socket accepts only a part
// of it.
#include "rpc/transport/socket_transport.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace weir::rpc {
namespace {

// Echoes what it receives at the end of a round, as far as the transport accepts it.
class Echo final : public TransportUser {
 public:
  Echo(asio::io_context& io, int send_buffer) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw std::system_error(errno, std::generic_category());
    peer = OwnedFd(ends[1]);
    if (send_buffer > 0) setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    transport = make_socket_transport(io, OwnedFd(ends[0]), "the other end");
    transport->start(*this);
  }

  std::span<std::byte> wanted() override { return {}; }
  void filled(std::size_t) override {}
  void received(std::span<const std::byte> bytes) override {
    waiting.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void round_ended() override {
    say();
    if (std::exchange(ends_output, false)) transport->end_output();
    if (closes) transport->close();
  }
  void writable() override {
    blocked = false;
    say();
  }
  void ended(Error) override { gone = true; }

  void say() {
    while (!waiting.empty() && !blocked && !gone) {
      const std::array pieces{asio::buffer(std::as_const(waiting), most)};
      const std::size_t taken = transport->write(pieces);
      blocked = taken < pieces[0].size();
      waiting.erase(0, taken);
    }
  }
  // What the peer sends and receives at the moment.
  void ask(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = write(peer.get(), text.data(), text.size());
      if (sent <= 0) break;
      said.append(text.substr(0, static_cast<std::size_t>(sent)));
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  void hear(std::size_t bytes) {
    std::string text(bytes, ' ');
    const ssize_t got = read(peer.get(), text.data(), text.size());
    if (got > 0) heard.append(text, 0, static_cast<std::size_t>(got));
    at_end |= got == 0;
  }

  OwnedFd peer;
  TransportPtr transport;
  std::size_t most = 1 << 20;  // in one write
  std::string waiting, said, heard;
  bool blocked = false, gone = false, ends_output = false, closes = false, at_end = false;
};

// No two nearby bytes are alike.
std::string text(std::size_t bytes, std::size_t from) {
  std::string text(bytes, ' ');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + (from + i) % 26);
  return text;
}

struct Row {
  const char* what;
  std::size_t sockets, request, most_in_a_write;
  int send_buffer;
};

TEST(SocketTransport, many_in_one_round_are_each_answered_whole) {
  constexpr std::size_t all_at_once = 1 << 20;
  for (const Row& row : {
           Row{"small ones", 5, 100, all_at_once, 0},
           Row{"more than expected", 5, 9'000, all_at_once, 0},
           Row{"of which a part is taken", 5, 7'000, all_at_once, 1},
           Row{"in several writes", 5, 100, 30, 0},
           Row{"in several writes, of which a part is taken", 5, 7'000, 3'000, 1},
           Row{"more sockets than a row", 40, 1'000, all_at_once, 1},
           Row{"one", 1, 100'000, all_at_once, 1},
       }) {
    SCOPED_TRACE(row.what);
    asio::io_context io(1);
    Poller::of(io).hold_answers(std::chrono::hours(1));
    std::vector<std::unique_ptr<Echo>> all;
    for (std::size_t i = 0; i < row.sockets; ++i) {
      all.push_back(std::make_unique<Echo>(io, row.send_buffer));
      all.back()->most = row.most_in_a_write;
    }
    for (int turn = 0; turn < 50; ++turn) {
      for (std::size_t i = 0; i < all.size(); ++i)
        all[i]->ask(text(row.request, static_cast<std::size_t>(turn) + i));
      for (int i = 0; i < 3; ++i) io.poll_one();
      for (auto& each : all) each->hear(row.request / 2 + 1);
    }
    for (auto& each : all) {
      while (each->heard.size() < each->said.size()) {
        each->hear(1 << 20);
        io.poll_one();
        ASSERT_FALSE(each->gone);
      }
      EXPECT_EQ(each->heard, each->said);
    }
    for (auto& each : all) each->transport->close();
    io.run();
  }
}

// Also data that did not fit into the socket when its output was to end.
TEST(SocketTransport, what_was_written_before_the_end_is_heard) {
  for (const bool full : {false, true}) {
    SCOPED_TRACE(full ? "no room" : "room");
    asio::io_context io(1);
    Poller::of(io).hold_answers(std::chrono::hours(1));
    std::vector<std::unique_ptr<Echo>> all;
    for (int i = 0; i < 3; ++i) all.push_back(std::make_unique<Echo>(io, 1));
    const std::string request(full ? 8'000 : 100, 'x');
    for (auto& each : all) {
      each->ends_output = true;
      each->ask(request);
    }
    for (auto& each : all)
      while (!each->at_end) {
        io.poll_one();
        each->hear(1'000);
      }
    for (auto& each : all) {
      EXPECT_EQ(each->heard, request);
      each->transport->close();
    }
    io.run();
  }
}

TEST(SocketTransport, what_was_written_before_it_closed_is_heard) {
  asio::io_context io(1);
  Poller::of(io).hold_answers(std::chrono::hours(1));
  std::vector<std::unique_ptr<Echo>> all;
  for (int i = 0; i < 3; ++i) all.push_back(std::make_unique<Echo>(io, 0));
  for (auto& each : all) {
    each->closes = true;
    each->ask("last words");
  }
  io.run();
  for (auto& each : all) {
    each->hear(100);
    EXPECT_EQ(each->heard, "last words");
  }
}

}  // namespace
}  // namespace weir::rpc
