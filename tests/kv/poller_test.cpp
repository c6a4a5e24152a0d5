// Rounds of the server's sockets, and the order in which other work runs between them.
#include "kv/net/poller.hpp"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <chrono>

#include "waiting/turn.hpp"

namespace weir::kv {
namespace {

// Always ready until it is removed.
class AlwaysReady final : public SocketPoller::Watcher {
 public:
  AlwaysReady(SocketPoller& poller, std::chrono::steady_clock::duration takes)
      : poller_(poller), fd_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)), takes_(takes) {
    poller_.add(fd_, *this, EPOLLIN);
  }
  ~AlwaysReady() {
    poller_.remove(fd_);
    close(fd_);
  }
  void ready(std::uint32_t) override {
    ++told;
    const auto until = std::chrono::steady_clock::now() + takes_;
    while (std::chrono::steady_clock::now() < until) {
    }
  }
  int told = 0;

 private:
  SocketPoller& poller_;
  const int fd_;
  const std::chrono::steady_clock::duration takes_;
};

TEST(SocketPoller, gives_others_their_turn_after_a_round_that_took_long) {
  asio::io_context io(1);
  SocketPoller poller(io, [] {});
  AlwaysReady slow(poller, 2 * waiting::Turn::length);
  for (int i = 1; i <= 5; ++i) {
    io.poll_one();  // perhaps the handler that armed the wait
    EXPECT_LE(slow.told, i) << "rounds went on while other handlers waited";
  }
  EXPECT_GT(slow.told, 0);
}

}  // namespace
}  // namespace weir::kv
