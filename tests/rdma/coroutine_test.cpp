// Streams inside coroutines: time limits by cancellation, and an io_context that is destroyed while they
// wait.
#include <gtest/gtest.h>

#include <asio/awaitable.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/read.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <memory>
#include <string>

#include "rdma/stream.hpp"
#include "tests/rdma/stream_pair.hpp"

namespace weir::rdma {
namespace {

using asio::use_awaitable;
using testing_support::StreamTest;
using namespace asio::experimental::awaitable_operators;

TEST_F(StreamTest, a_read_with_a_time_limit_loses_nothing_when_the_time_is_up) {
  auto [client, server] = connect_pair();
  bool timed_out = false;
  std::string got(5, ' ');
  const auto scenario = [&](Stream& reader, Stream& writer) -> asio::awaitable<void> {
    asio::steady_timer limit(io, std::chrono::milliseconds(5));
    const auto first = co_await (asio::async_read(reader, asio::buffer(got), use_awaitable) ||
                                 limit.async_wait(use_awaitable));
    timed_out = first.index() == 1;
    co_await asio::async_write(writer, asio::buffer("later", 5), use_awaitable);
    co_await asio::async_read(reader, asio::buffer(got), use_awaitable);
  };
  bool done = false;
  asio::co_spawn(io, scenario(server, client), [&](const std::exception_ptr& error) {
    EXPECT_EQ(error, nullptr);
    done = true;
  });
  run_until([&] { return done; });
  EXPECT_TRUE(timed_out);
  EXPECT_EQ(got, "later");
}

TEST_F(StreamTest, one_of_several_accepts_can_be_cancelled_and_the_others_go_on) {
  Acceptor acceptor = listen();
  asio::cancellation_signal stop;
  std::vector<std::string> ended;
  const auto note = [&](const char* which) {
    return [&ended, which](std::error_code failed, const Stream&) {
      ended.push_back(which + std::string(failed == asio::error::operation_aborted ? " aborted" : ""));
    };
  };
  acceptor.async_accept(note("first"));
  acceptor.async_accept(asio::bind_cancellation_slot(stop.slot(), note("second")));
  acceptor.async_accept(note("third"));
  stop.emit(asio::cancellation_type::all);
  run_until([&] { return ended.size() == 1; });
  Stream one(*engine), two(*engine);
  int connected = 0;
  for (Stream* each : {&one, &two})
    async_connect(*each, acceptor.local_endpoint(), StreamSettings(),
                  [&](std::error_code failed) { connected += failed ? 0 : 1; });
  run_until([&] { return connected == 2 && ended.size() == 3; });
  EXPECT_EQ(ended, (std::vector<std::string>{"second aborted", "first", "third"}));
}

TEST_F(StreamTest, an_acceptor_that_finishes_hands_out_what_it_accepted_and_nothing_more) {
  Acceptor acceptor = listen();
  const Endpoint at = acceptor.local_endpoint();
  std::vector<std::string> seen;
  const auto note = [&](const char* what) {
    return [&seen, what](std::error_code failed, const auto&...) {
      seen.push_back(std::string(what) + (failed ? " failed" : ""));
      if (failed == asio::error::operation_aborted) seen.back() = std::string(what) + " aborted";
    };
  };
  Stream early(*engine), late(*engine);
  async_connect(early, at, StreamSettings(), note("early"));
  run_until([&] { return seen.size() == 1; });
  acceptor.finish();
  async_connect(late, at, StreamSettings(), note("late"));
  run_until([&] { return seen.size() == 2; });
  acceptor.async_accept(note("first accept"));
  run_until([&] { return seen.size() == 3; });
  acceptor.async_accept(note("second accept"));
  run_until([&] { return seen.size() == 4; });
  EXPECT_EQ(seen,
            (std::vector<std::string>{"early", "late failed", "first accept", "second accept aborted"}));
}

TEST_F(StreamTest, one_operation_can_be_cancelled_and_the_other_goes_on) {
  auto [client, server] = connect_pair();
  asio::cancellation_signal stop_reading;
  char byte = 0;
  std::error_code read_result;
  server.async_read_some(asio::buffer(&byte, 1),
                         asio::bind_cancellation_slot(
                             stop_reading.slot(), [&](std::error_code e, std::size_t) { read_result = e; }));
  stop_reading.emit(asio::cancellation_type::all);
  run_until([&] { return static_cast<bool>(read_result); });
  EXPECT_EQ(read_result, asio::error::operation_aborted);

  bool written = false;
  asio::async_write(server, asio::buffer("x", 1), [&](std::error_code e, std::size_t) { written = !e; });
  run_until([&] { return written; });
}

TEST_F(StreamTest, a_second_read_at_a_time_is_refused) {
  auto [client, server] = connect_pair();
  char bytes[2];
  std::error_code first = asio::error::would_block, second = asio::error::would_block;
  server.async_read_some(asio::buffer(&bytes[0], 1), [&](std::error_code e, std::size_t) { first = e; });
  server.async_read_some(asio::buffer(&bytes[1], 1), [&](std::error_code e, std::size_t) { second = e; });
  run_until([&] { return second != asio::error::would_block; });
  EXPECT_EQ(second, asio::error::already_started);
  EXPECT_EQ(first, asio::error::would_block);
}

// Nothing to check here: AddressSanitizer would report a use after free or a leak.
TEST(IoContext, may_be_destroyed_while_streams_wait_in_it) {
  auto io = std::make_unique<asio::io_context>(1);
  Result<Engine*> engine = Engine::open(*io, testing_support::test_provider());
  ASSERT_TRUE(engine) << engine.error().what;
  Result<Acceptor> acceptor = Acceptor::listen(**engine, testing_support::test_address());
  ASSERT_TRUE(acceptor) << acceptor.error().what;
  int waiting = 0;

  const auto wait_for_byte = [&waiting](Stream stream) -> asio::awaitable<void> {
    char byte = 0;
    ++waiting;
    co_await asio::async_read(stream, asio::buffer(&byte, 1), use_awaitable);
  };
  const auto serve = [&](Acceptor listening) -> asio::awaitable<void> {
    Stream stream = co_await listening.async_accept(use_awaitable);
    asio::co_spawn(*io, wait_for_byte(std::move(stream)), asio::detached);
    co_await listening.async_accept(use_awaitable);  // no connection ever arrives
  };
  const auto connect = [&](Endpoint to) -> asio::awaitable<void> {
    Stream stream(**engine);
    const StreamSettings settings;
    co_await async_connect(stream, to, settings, use_awaitable);
    co_await wait_for_byte(std::move(stream));
  };
  const Endpoint address = acceptor->local_endpoint();
  asio::co_spawn(*io, serve(std::move(*acceptor)), asio::detached);
  asio::co_spawn(*io, connect(address), asio::detached);
  while (waiting < 2) io->run_one();
  io.reset();
}

}  // namespace
}  // namespace weir::rdma
