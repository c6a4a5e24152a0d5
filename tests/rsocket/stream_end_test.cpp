// How streams end: one half closed, both halves, both ends at once, and calls that wait meanwhile.
#include <gmock/gmock.h>

#include <future>

#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

TEST(StreamEnd, closing_is_the_end_of_the_stream_behind_what_was_sent) {
  Pair pair;
  const std::string last = pattern(50'000);
  ASSERT_EQ(send(pair.client, last), static_cast<ssize_t>(last.size()));
  pair.client.close();
  EXPECT_EQ(receive(pair.server, 100'000, MSG_WAITALL), last);
  EXPECT_EQ(receive(pair.server), "");
  EXPECT_EQ(receive(pair.server), "") << "and stays so";
}

TEST(StreamEnd, half_closed_still_receives) {
  Pair pair;
  send(pair.client, "question");
  ASSERT_EQ(::rshutdown(pair.client.get(), SHUT_WR), 0);
  EXPECT_EQ(receive(pair.server, 100, MSG_WAITALL), "question");
  EXPECT_EQ(send(pair.server, "answer"), 6);
  EXPECT_EQ(receive(pair.client), "answer");
  EXPECT_EQ(send(pair.client, "more"), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(StreamEnd, both_halves_closed_are_the_end_on_both_sides) {
  Pair pair;
  ASSERT_EQ(::rshutdown(pair.client.get(), SHUT_WR), 0);
  ASSERT_EQ(::rshutdown(pair.server.get(), SHUT_WR), 0);
  EXPECT_EQ(receive(pair.server), "");
  EXPECT_EQ(receive(pair.client), "");
}

TEST(StreamEnd, sending_to_a_closed_peer_is_a_reset) {
  Pair pair;
  pair.server.close();
  EXPECT_EQ(receive(pair.client), "");
  EXPECT_EQ(send(pair.client, "x"), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(StreamEnd, not_reading_any_more_is_the_end_for_the_reader_at_once) {
  Pair pair;
  auto reader = std::async(std::launch::async, [&] { return receive(pair.client); });
  ASSERT_EQ(::rshutdown(pair.client.get(), SHUT_RD), 0);
  EXPECT_EQ(reader.get(), "");
  EXPECT_EQ(send(pair.client, "still"), 5);
  EXPECT_EQ(receive(pair.server), "still");
}

TEST(StreamEnd, a_bad_direction_is_invalid) {
  Pair pair;
  EXPECT_EQ(::rshutdown(pair.client.get(), 7), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(StreamEnd, a_reader_that_sleeps_wakes_at_the_end) {
  Pair pair;
  auto reader = std::async(std::launch::async, [&] { return receive(pair.server); });
  pair.client.close();
  EXPECT_EQ(reader.get(), "");
}

TEST(StreamEnd, a_sender_that_sleeps_wakes_when_its_peer_closes) {
  Pair pair(4096);
  const std::string much = pattern(1'000'000);
  auto sender = std::async(std::launch::async, [&] {
    std::size_t sent = 0;
    for (ssize_t part = 0; part >= 0; sent += static_cast<std::size_t>(part)) {
      part = send(pair.client, much);
      if (part < 0) break;
    }
    return errno;
  });
  receive(pair.server, 1);
  pair.server.close();
  EXPECT_EQ(sender.get(), ECONNRESET);
}

TEST(StreamEnd, closing_under_a_waiting_call_ends_it) {
  Pair pair;
  const int number = pair.client.release();
  auto reader = std::async(std::launch::async, [&] {
    char byte;
    return ::rrecv(number, &byte, 1, 0) == -1 ? errno : 0;
  });
  EXPECT_EQ(::rclose(number), 0);
  const int error = reader.get();
  EXPECT_EQ(error, EBADF);
  EXPECT_EQ(receive(pair.server), "");
}

TEST(StreamEnd, closing_a_listener_refuses_those_who_come_and_ends_those_who_wait) {
  Rsocket listener = listening();
  const auto at = name_of(listener);
  Rsocket waiting = stream();
  ASSERT_EQ(connect(waiting, at), 0);
  listener.close();
  EXPECT_THAT(receive(waiting), testing::AnyOf("", words(ECONNRESET)));
  Rsocket late = stream();
  EXPECT_EQ(connect(late, at), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
}

TEST(StreamEnd, a_number_is_free_again_after_close) {
  Rsocket first = stream();
  const int number = first.get();
  first.close();
  EXPECT_EQ(::rfcntl(number, F_GETFL), -1);
  EXPECT_EQ(errno, EBADF);
}

// Sockets come and go in two threads while a third sends: nothing is lost, nothing hangs.
TEST(StreamEnd, connections_may_come_and_go_quickly) {
  Rsocket listener = listening(64);
  const auto at = name_of(listener);
  constexpr int rounds = 50;
  auto server = std::async(std::launch::async, [&] {
    std::string all;
    for (int i = 0; i < rounds; ++i) {
      Rsocket one(::raccept(listener.get(), nullptr, nullptr));
      all += receive(one, 16, MSG_WAITALL);
    }
    return all;
  });
  for (int i = 0; i < rounds; ++i) {
    Rsocket client = stream();
    ASSERT_EQ(connect(client, at), 0) << std::strerror(errno);
    ASSERT_EQ(send(client, "x"), 1);
  }
  EXPECT_EQ(server.get(), std::string(rounds, 'x'));
}

}  // namespace
}  // namespace weir::rsocket
