// The functions that a fuzzed rpc server has in addition to tests/rpc/services.hpp: streams in each
// direction, results of any size, members, and functions that drain or stop their own server.
#pragma once

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "rpc/server.hpp"
#include "tests/rpc/services.hpp"

namespace feed {

using weir::rpc::Context;
using weir::rpc::Reader;
using weir::rpc::Result;
using weir::rpc::Writer;

inline std::string sized(std::uint32_t bytes) { return std::string(std::min(bytes, 200'000u), 'x'); }
inline Result<std::uint32_t> divide(std::uint32_t a, std::uint32_t b) {
  if (b == 0) return weir::rpc::fail(weir::rpc::Errc::bad_arguments, "division by zero");
  return a / b;
}

class Counter {
 public:
  std::uint64_t add(std::uint32_t by) { return value_ += by; }
  std::uint64_t get() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

inline int running = 0;
struct Running {
  Running() { ++running; }
  ~Running() { --running; }
};

inline asio::awaitable<std::uint32_t> ticks(std::uint32_t count, std::uint32_t bytes,
                                            Writer<std::string> out) {
  const Running counted;
  const std::string text(std::min(bytes, 100'000u), 't');
  std::uint32_t written = 0;
  while (written < std::min(count, 1000u) && co_await out.write(text)) ++written;
  co_return written;
}

inline asio::awaitable<std::int64_t> total(Reader<std::int32_t> in) {
  const Running counted;
  std::int64_t sum = 0;
  while (auto number = co_await in.read()) sum += *number;
  co_return sum;
}

inline asio::awaitable<std::uint32_t> shout(std::string suffix, Reader<std::string> in,
                                            Writer<std::string> out) {
  const Running counted;
  std::uint32_t count = 0;
  while (auto text = co_await in.read()) {
    const std::string answer = *text + suffix;
    if (!co_await out.write(answer)) break;
    ++count;
  }
  co_return count;
}

// Reads and writes at the same time.
inline asio::awaitable<std::int64_t> both(std::uint32_t count, Reader<std::int32_t> in,
                                          Writer<std::string> out) {
  using namespace asio::experimental::awaitable_operators;
  const Running counted;
  const auto ended = co_await (total(std::move(in)) || ticks(count, 1000, std::move(out)));
  co_return static_cast<std::int64_t>(ended.index());
}

inline asio::awaitable<Result<std::int32_t>> first(Reader<std::int32_t> in) {
  const Running counted;
  const auto number = co_await in.read();
  if (!number) co_return weir::rpc::fail(weir::rpc::Errc::denied, "nothing came");
  co_return *number;
}

// Neither reads nor writes.
inline asio::awaitable<void> idle(Reader<std::int32_t>, Writer<std::int32_t>, Context& context) {
  const Running counted;
  co_await shop::wait_for_ever(context);
}

inline asio::awaitable<std::uint32_t> pause(std::uint32_t us);
inline asio::awaitable<Result<std::uint32_t>> divide_later(std::uint32_t a, std::uint32_t b) {
  co_await pause(1);
  co_return divide(a, b);
}

inline asio::awaitable<std::uint32_t> pause(std::uint32_t us) {
  const Running counted;
  asio::steady_timer timer(co_await asio::this_coro::executor, std::chrono::microseconds(us));
  co_await timer.async_wait(asio::use_awaitable);
  co_return us;
}

inline weir::rpc::Server* server = nullptr;
inline void drain() { server->drain(); }
inline void stop() {
  if (server != nullptr) server->stop();
}
inline asio::awaitable<void> stop_later() {
  co_await pause(1);
  stop();
}

}  // namespace feed
