// A million changes of carriers, every byte compared: one thread sends and receives at both ends in an order
// that a seed chooses (WEIR_TEST_SEED, printed). Runs under the preloaded library with a change every few
// bytes (WEIR_SOCKETS_CHANGE_EVERY). Labelled slow.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "tests/sockets/tcp_pair.hpp"

namespace weir::sockets::test {
namespace {

constexpr std::uint64_t changes_by_one_thread = 500'000;  // a direction
constexpr std::size_t most_a_piece = 24, most_ahead = 96;

char byte_at(std::uint64_t seed, std::uint64_t position) {
  return static_cast<char>(((position + seed) * 0x9E37'79B9'7F4A'7C15u) >> 56);
}

std::uint64_t chosen_seed() {
  const char* const chosen = std::getenv("WEIR_TEST_SEED");
  const std::uint64_t seed = chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : std::random_device{}();
  std::printf("seed %lu\n", static_cast<unsigned long>(seed));
  return seed;
}

// The kernel counts what goes by TCP, so a piece that did not move its count went by the ring.
class Carriers {
 public:
  explicit Carriers(int fd) : fd_(fd), by_tcp_(written_to_tcp(fd)) {}
  std::uint64_t changes_after_a_piece() {
    const auto now = written_to_tcp(fd_);
    const bool ring = now == by_tcp_;
    changes_ += ring != ring_ ? 1 : 0;
    ring_ = ring;
    by_tcp_ = now;
    return changes_;
  }

 private:
  const int fd_;
  std::uint64_t by_tcp_, changes_ = 0;
  bool ring_ = false;
};

class Direction {
 public:
  Direction(int from, int to, std::uint64_t seed) : from_(from), to_(to), seed_(seed), carriers_(from) {}

  void send(std::size_t bytes) {
    std::array<char, most_a_piece> piece;
    for (std::size_t i = 0; i < bytes; ++i) piece[i] = byte_at(seed_, sent_ + i);
    const ssize_t sent = ::send(from_, piece.data(), bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return;
    ASSERT_GT(sent, 0);
    sent_ += static_cast<std::uint64_t>(sent);
    changes_ = carriers_.changes_after_a_piece();
  }
  void receive(std::size_t most) {
    std::array<char, 64> bytes;
    const ssize_t got = ::recv(to_, bytes.data(), std::min(most, bytes.size()), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    ASSERT_GT(got, 0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(got); ++i)
      ASSERT_EQ(bytes[i], byte_at(seed_, received_ + i)) << "byte " << received_ + i;
    received_ += static_cast<std::uint64_t>(got);
  }
  std::uint64_t ahead() const { return sent_ - received_; }
  std::uint64_t changes() const { return changes_; }
  std::uint64_t sent() const { return sent_; }

 private:
  const int from_, to_;
  const std::uint64_t seed_;
  Carriers carriers_;
  std::uint64_t sent_ = 0, received_ = 0, changes_ = 0;
};

TEST(ManyChanges, a_million_changes_of_carriers_lose_no_byte) {
  const std::uint64_t seed = chosen_seed();
  std::mt19937_64 random(seed);
  TcpPair pair;
  const int at_once = 1;
  for (const int fd : {pair.client, pair.server})
    ASSERT_EQ(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once), 0);
  std::array<Direction, 2> both{Direction(pair.client, pair.server, seed),
                                Direction(pair.server, pair.client, ~seed)};
  const auto over = [](const Direction& one) { return one.changes() >= changes_by_one_thread; };
  while (!std::ranges::all_of(both, over) && !HasFatalFailure()) {
    Direction& one = both[random() % 2];
    if (one.ahead() < random() % most_ahead)
      one.send(1 + random() % most_a_piece);
    else
      one.receive(1 + random() % (2 * most_ahead));
  }
  for (Direction& one : both) {
    while (one.ahead() > 0 && !HasFatalFailure()) one.receive(most_ahead);
    std::printf("%lu bytes, %lu changes\n", static_cast<unsigned long>(one.sent()),
                static_cast<unsigned long>(one.changes()));
  }
}

}  // namespace
}  // namespace weir::sockets::test
