// rpoll and rselect: what is ready, and waking threads that sleep.
#include <gmock/gmock.h>
#include <sys/eventfd.h>

#include <future>

#include "tests/rsocket/fixture.hpp"

namespace weir::rsocket {
namespace {

TEST(Poll, an_idle_stream_can_only_be_written) {
  Pair pair;
  EXPECT_EQ(poll(pair.client, POLLIN | POLLOUT, 0), POLLOUT);
  EXPECT_EQ(poll(pair.client, POLLIN, 0), 0);
}

TEST(Poll, bytes_make_a_stream_readable_until_they_are_read) {
  Pair pair;
  send(pair.client, "x");
  EXPECT_EQ(poll(pair.server, POLLIN), POLLIN);
  receive(pair.server);
  EXPECT_EQ(poll(pair.server, POLLIN, 0), 0);
}

TEST(Poll, a_full_stream_is_writable_again_when_the_peer_read) {
  Pair pair(4096);
  set_blocking(pair.client, false);
  const std::string much = pattern(100'000);
  while (send(pair.client, much) > 0) {
  }
  EXPECT_EQ(poll(pair.client, POLLOUT, 0), 0);
  auto waits = std::async(std::launch::async, [&] { return poll(pair.client, POLLOUT); });
  receive(pair.server, 100'000);
  EXPECT_EQ(waits.get(), POLLOUT);
}

TEST(Poll, a_closed_peer_is_readable_and_hung_up) {
  Pair pair;
  pair.client.close();
  EXPECT_EQ(poll(pair.server, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP | POLLHUP);
}

TEST(Poll, a_closed_peer_is_not_hung_up_while_its_bytes_are_unread) {
  Pair pair;
  send(pair.client, "last");
  pair.client.close();
  EXPECT_EQ(poll(pair.server, POLLIN), POLLIN);
  EXPECT_EQ(receive(pair.server), "last");
  EXPECT_EQ(poll(pair.server, POLLIN), POLLIN | POLLHUP);
}

TEST(Poll, a_half_closed_peer_is_readable_and_not_hung_up) {
  Pair pair;
  ::rshutdown(pair.client.get(), SHUT_WR);
  EXPECT_EQ(poll(pair.server, POLLIN | POLLOUT | POLLRDHUP), POLLIN | POLLOUT | POLLRDHUP);
}

TEST(Poll, a_listener_is_readable_when_a_connection_waits) {
  Rsocket listener = listening();
  EXPECT_EQ(poll(listener, POLLIN, 0), 0);
  auto waits = std::async(std::launch::async, [&] { return poll(listener, POLLIN); });
  Rsocket client = stream();
  ASSERT_EQ(connect(client, name_of(listener)), 0);
  EXPECT_EQ(waits.get(), POLLIN);
  Rsocket server(::raccept(listener.get(), nullptr, nullptr));
  EXPECT_EQ(poll(listener, POLLIN, 0), 0);
}

TEST(Poll, times_out) {
  Pair pair;
  EXPECT_EQ(poll(pair.client, POLLIN, 20), 0);
}

TEST(Poll, mixes_rsockets_with_plain_descriptors) {
  Pair pair;
  const link::UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  pollfd both[] = {{pair.client.get(), POLLIN, 0}, {event.get(), POLLIN, 0}, {-1, POLLIN, 7}};
  auto waits = std::async(std::launch::async, [&] { return ::rpoll(both, 3, patience_ms); });
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(event.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  EXPECT_EQ(waits.get(), 1);
  EXPECT_EQ(both[0].revents, 0);
  EXPECT_EQ(both[1].revents, POLLIN);
  EXPECT_EQ(both[2].revents, 0);
}

TEST(Poll, a_number_that_is_nothing_is_invalid) {
  Rsocket gone = stream();
  const int number = gone.get();
  gone.close();
  pollfd one{number, POLLIN, 0};
  EXPECT_EQ(::rpoll(&one, 1, 0), 1);
  EXPECT_EQ(one.revents, POLLNVAL);
}

// One takes the event both sleep for; the other must not sleep on.
TEST(Poll, all_who_sleep_on_one_socket_wake) {
  Pair pair;
  for (int round = 0; round < 50; ++round) {
    std::vector<std::future<short>> sleepers;
    for (int i = 0; i < 4; ++i)
      sleepers.push_back(std::async(std::launch::async, [&] { return poll(pair.server, POLLIN); }));
    send(pair.client, "x");
    for (auto& sleeper : sleepers) EXPECT_EQ(sleeper.get(), POLLIN) << round;
    EXPECT_EQ(receive(pair.server), "x");
  }
}

TEST(Poll, a_reader_and_a_poller_of_one_socket_both_make_progress) {
  Pair pair(4096);
  const std::string all = pattern(300'000);
  auto reader = std::async(std::launch::async, [&] {
    std::string got;
    while (got.size() < all.size()) got += receive(pair.client, 1000);
    return got;
  });
  // This one polls the client's socket for writing, sleeping between, while the reader sleeps for reading.
  auto writer = std::async(std::launch::async, [&] {
    set_blocking(pair.server, true);
    return send(pair.server, all);
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(poll(pair.client, POLLOUT) & POLLOUT, POLLOUT);
  EXPECT_EQ(writer.get(), static_cast<ssize_t>(all.size()));
  EXPECT_TRUE(reader.get() == all);
}

TEST(Select, fills_the_sets_with_what_is_ready) {
  Pair pair;
  send(pair.client, "x");
  EXPECT_EQ(poll(pair.server, POLLIN), POLLIN);
  fd_set read, write;
  FD_ZERO(&read);
  FD_ZERO(&write);
  for (const Rsocket* socket : {&pair.client, &pair.server}) {
    FD_SET(socket->get(), &read);
    FD_SET(socket->get(), &write);
  }
  const int count = std::max(pair.client.get(), pair.server.get()) + 1;
  timeval none{};
  EXPECT_EQ(::rselect(count, &read, &write, nullptr, &none), 3);
  EXPECT_TRUE(FD_ISSET(pair.server.get(), &read));
  EXPECT_FALSE(FD_ISSET(pair.client.get(), &read));
  EXPECT_TRUE(FD_ISSET(pair.client.get(), &write));
}

TEST(Select, times_out_with_empty_sets) {
  Pair pair;
  fd_set read;
  FD_ZERO(&read);
  FD_SET(pair.client.get(), &read);
  timeval soon{.tv_sec = 0, .tv_usec = 1000};
  EXPECT_EQ(::rselect(pair.client.get() + 1, &read, nullptr, nullptr, &soon), 0);
  EXPECT_FALSE(FD_ISSET(pair.client.get(), &read));
}

}  // namespace
}  // namespace weir::rsocket
