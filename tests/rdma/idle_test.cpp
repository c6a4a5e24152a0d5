// An engine without traffic sleeps: it neither polls nor uses CPU time, and wakes at once
// when something arrives.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

#include "rdma/stream.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using std::chrono::milliseconds;
using testing_support::StreamTest;

std::chrono::microseconds cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& t) {
    return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

TEST_F(StreamTest, sleeps_when_idle_and_wakes_for_traffic) {
  auto [client, server] = connect_pair();
  const std::uint64_t sleeps_before = engine->stats().sleeps;
  run_until([&] { return engine->stats().sleeps > sleeps_before; });

  const EngineStats asleep = engine->stats();
  const auto cpu_before = cpu_time();
  io.run_for(milliseconds(500));
  const auto cpu_used = cpu_time() - cpu_before;
  // One tick, and at most one keepalive.
  EXPECT_LE(engine->stats().rounds - asleep.rounds, 50u);
  EXPECT_LT(cpu_used, milliseconds(25)) << "5 % of half a second";

  run_until([&] { return client.try_write(asio::buffer("wake", 4)) == 4; });
  run_until([&] { return server.readable().size() == 4; });
  EXPECT_FALSE(server.end());
}

TEST_F(StreamTest, polling_leaves_room_for_other_handlers) {
  auto [client, server] = connect_pair();
  // A ping-pong that never pauses, beside a chain of ordinary handlers.
  server.on_readable([&, &peer = server] {
    peer.consume(peer.readable().size());
    peer.try_write(asio::buffer("b", 1));
  });
  int rounds = 0, others = 0;
  client.on_readable([&, &peer = client] {
    peer.consume(peer.readable().size());
    ++rounds;
    peer.try_write(asio::buffer("a", 1));
  });
  run_until([&] { return client.try_write(asio::buffer("a", 1)) == 1; });
  std::function<void()> other = [&] {
    if (++others < 100) asio::post(io, other);
  };
  other();
  run_until([&] { return others == 100 && rounds > 0; });
}

}  // namespace
}  // namespace weir::rdma
