// Clients that have more to do than one turn allows: who goes on, and when.
//
// What a client sent at once may keep the server busy for seconds. It is executed in turns, and between two
// of them everything else gets its own: other clients' requests, timers, what is freed or evicted in steps.
// Clients go on in the order in which their turns ended, one at a time.
//
// Threading: the server's one thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <functional>

namespace weir::kv {

class ClientTurns {
 public:
  // How long a turn is, in cycles_now(): 2 to 5 ms with a cycle counter, 10 ms without. A request that has
  // begun is finished.
  static constexpr std::uint64_t length = 10'000'000;

  // `go_on` may be passed a client that no longer exists.
  using GoOn = std::function<void(std::uint64_t client)>;
  ClientTurns(asio::io_context& io, GoOn go_on) : timer_(io), go_on_(std::move(go_on)) {}

  void wait(std::uint64_t client);
  void cancel() { timer_.cancel(); }

 private:
  // A timer, and not a posted handler: Asio runs timers after the sockets that are ready.
  void arm();

  asio::steady_timer timer_;
  bool armed_ = false;
  std::deque<std::uint64_t> waiting_;  // no client twice
  GoOn go_on_;
};

}  // namespace weir::kv
