// repoll_create, repoll_ctl and repoll_wait: epoll(7) over rsockets and plain descriptors.
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <set>

#include "tests/rsocket/event_poll_fixture.hpp"

namespace weir::rsocket {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(EventPoll, tells_what_holds_of_a_stream) {
  Pair pair;
  Set set;
  set.add(pair.server, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
  EXPECT_THAT(set.now(), ElementsAre(out(pair.server)));
  send(pair.client, "x");
  EXPECT_THAT(set.now(), ElementsAre(in(pair.server, EPOLLIN | EPOLLOUT)));
  receive(pair.server);
  pair.client.close();
  EXPECT_THAT(set.wait(), ElementsAre(in(pair.server, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP)));
}

TEST(EventPoll, tells_again_until_the_bytes_are_read) {
  Pair pair;
  Set set;
  set.add(pair.server, EPOLLIN);
  send(pair.client, "x");
  EXPECT_THAT(set.wait(), ElementsAre(in(pair.server)));
  EXPECT_THAT(set.now(), ElementsAre(in(pair.server)));
  receive(pair.server);
  EXPECT_THAT(set.now(), IsEmpty());
}

TEST(EventPoll, tells_of_an_edge_once_each_time_something_came) {
  Pair pair;
  Set set;
  set.add(pair.server, EPOLLIN | EPOLLET);
  EXPECT_THAT(set.now(), IsEmpty());
  for (int round = 0; round < 3; ++round) {
    send(pair.client, "x");
    EXPECT_THAT(set.wait(), ElementsAre(in(pair.server))) << round;
    EXPECT_THAT(set.now(), IsEmpty()) << round;
  }
}

TEST(EventPoll, tells_of_an_edge_that_was_there_when_it_was_added) {
  Pair pair;
  Set set;
  send(pair.client, "x");
  EXPECT_EQ(poll(pair.server, POLLIN), POLLIN);
  set.add(pair.server, EPOLLIN | EPOLLET);
  EXPECT_THAT(set.now(), ElementsAre(in(pair.server)));
  set.modify(pair.server, EPOLLIN | EPOLLET);
  EXPECT_THAT(set.now(), ElementsAre(in(pair.server))) << "and when it was changed";
}

TEST(EventPoll, tells_of_room_as_an_edge_after_the_peer_read) {
  Pair pair(4096);
  set_blocking(pair.client, false);
  const std::string much = pattern(100'000);
  while (send(pair.client, much) > 0) {
  }
  Set set;
  set.add(pair.client, EPOLLOUT | EPOLLET);
  EXPECT_THAT(set.now(), IsEmpty());
  auto waits = set.begin_wait();
  receive(pair.server, 100'000);
  EXPECT_THAT(waits.get(), ElementsAre(out(pair.client)));
}

TEST(EventPoll, tells_a_one_shot_member_once_until_it_is_changed) {
  Pair pair;
  Set set;
  set.add(pair.server, EPOLLIN | EPOLLONESHOT);
  send(pair.client, "x");
  EXPECT_THAT(set.wait(), ElementsAre(in(pair.server)));
  EXPECT_THAT(set.now(), IsEmpty());
  send(pair.client, "y");
  EXPECT_THAT(set.wait(20), IsEmpty());
  set.modify(pair.server, EPOLLIN | EPOLLONESHOT);
  EXPECT_THAT(set.now(), ElementsAre(in(pair.server)));
}

TEST(EventPoll, asks_for_other_events_from_then_on) {
  Pair pair;
  Set set;
  set.add(pair.client, EPOLLIN);
  EXPECT_THAT(set.now(), IsEmpty());
  set.modify(pair.client, EPOLLOUT);
  EXPECT_THAT(set.now(), ElementsAre(out(pair.client)));
}

TEST(EventPoll, forgets_a_member_that_is_taken_out_or_closed) {
  Pair pair;
  Set set;
  set.add(pair.client, EPOLLOUT);
  set.add(pair.server, EPOLLOUT);
  EXPECT_THAT(set.now(), UnorderedElementsAre(out(pair.client), out(pair.server)));
  EXPECT_EQ(set.control(EPOLL_CTL_DEL, pair.client.get()), 0);
  EXPECT_THAT(set.now(), ElementsAre(out(pair.server)));
  const int number = pair.server.get();
  pair.server.close();
  EXPECT_THAT(set.now(), IsEmpty());
  EXPECT_EQ(set.control(EPOLL_CTL_DEL, number), EBADF);
}

TEST(EventPoll, refuses_as_epoll_does) {
  Pair pair;
  Set set;
  const link::UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  set.add(pair.client, EPOLLIN);
  const int client = pair.client.get(), server = pair.server.get();
  EXPECT_EQ(set.control(EPOLL_CTL_ADD, client), EEXIST);
  EXPECT_EQ(set.control(EPOLL_CTL_MOD, server), ENOENT);
  EXPECT_EQ(set.control(EPOLL_CTL_DEL, server), ENOENT);
  EXPECT_EQ(set.control(77, client), EINVAL);
  EXPECT_EQ(set.control(EPOLL_CTL_DEL, event.get()), ENOENT);
  EXPECT_EQ(set.control(EPOLL_CTL_ADD, -1), EBADF);
  EXPECT_EQ(set.control(EPOLL_CTL_ADD, set.get()), EINVAL);
  epoll_event none;
  const auto refused = [](int result) { return result == -1 ? errno : 0; };
  EXPECT_EQ(refused(::repoll_ctl(set.get(), EPOLL_CTL_ADD, server, nullptr)), EFAULT);
  EXPECT_EQ(refused(::repoll_ctl(client, EPOLL_CTL_ADD, server, &none)), EBADF);
  EXPECT_EQ(refused(::repoll_wait(client, &none, 1, 0)), EBADF);
  EXPECT_EQ(refused(::repoll_wait(set.get(), &none, 0, 0)), EINVAL);
  EXPECT_EQ(refused(::repoll_wait(set.get(), nullptr, 1, 0)), EFAULT);
  EXPECT_EQ(refused(::repoll_create(~EPOLL_CLOEXEC)), EINVAL);
}

TEST(EventPoll, times_out) {
  Pair pair;
  Set set;
  set.add(pair.client, EPOLLIN);
  EXPECT_THAT(set.wait(20), IsEmpty());
}

TEST(EventPoll, mixes_rsockets_with_plain_descriptors) {
  Pair pair;
  Set set;
  const link::UniqueFd event(::eventfd(0, EFD_CLOEXEC));
  set.add(pair.server, EPOLLIN);
  EXPECT_EQ(set.control(EPOLL_CTL_ADD, event.get(), EPOLLIN), 0);
  const Told plain = told_of(event.get(), EPOLLIN);
  auto waits = set.begin_wait();
  EXPECT_EQ(::eventfd_write(event.get(), 1), 0);
  EXPECT_THAT(waits.get(), ElementsAre(plain));
  send(pair.client, "x");
  std::set<Told> seen;
  while (seen.size() < 2) {
    for (const Told& told : set.wait()) seen.insert(told);
  }
  EXPECT_THAT(seen, UnorderedElementsAre(plain, in(pair.server)));
  EXPECT_EQ(set.control(EPOLL_CTL_DEL, event.get()), 0);
  EXPECT_THAT(set.wait(), ElementsAre(in(pair.server)));
}

TEST(EventPoll, tells_of_a_plain_descriptor_while_rsockets_are_always_ready) {
  Pair pair;
  Set set;
  const link::UniqueFd event(::eventfd(1, EFD_CLOEXEC));
  set.add(pair.server, EPOLLOUT);
  EXPECT_EQ(set.control(EPOLL_CTL_ADD, event.get(), EPOLLIN), 0);
  std::set<Told> seen;
  for (int i = 0; i < 100 && seen.size() < 2; ++i) {
    for (const Told& told : set.now()) seen.insert(told);
  }
  EXPECT_THAT(seen, UnorderedElementsAre(out(pair.server), told_of(event.get(), EPOLLIN)));
}

TEST(EventPoll, gives_each_ready_member_its_turn) {
  std::vector<Pair> pairs(8);
  Set set;
  for (const Pair& pair : pairs) set.add(pair.client, EPOLLOUT);
  std::set<Told> seen;
  for (int i = 0; i < 3; ++i) {
    for (const Told& told : set.wait(0, 3)) seen.insert(told);
  }
  EXPECT_EQ(seen.size(), pairs.size());
}

// What wakes a thread that sleeps, by what happens to `pair` and `listener`.
struct Waking {
  const char* what;
  std::function<void(Set&, Pair&, Rsocket& listener, Rsocket& other)> happens;
  std::function<std::uint64_t(const Pair&, const Rsocket& listener)> who;
};

class Wakes : public testing::TestWithParam<Waking> {};

TEST_P(Wakes, a_sleeper) {
  for (const bool tired : {false, true}) {
    SCOPED_TRACE(tired);
    Pair pair;
    Rsocket listener = listening(), other = stream();
    Set set;
    set.add(listener, EPOLLIN);
    set.add(pair.server, EPOLLIN);
    if (tired) set.tire();
    auto waits = set.begin_wait();
    const std::uint64_t who = GetParam().who(pair, listener);
    GetParam().happens(set, pair, listener, other);
    const auto told = waits.get();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told.front().second, who);
  }
}

std::uint64_t the_server(const Pair& pair, const Rsocket&) { return std::uint64_t(pair.server.get()); }
std::uint64_t the_listener(const Pair&, const Rsocket& listener) { return std::uint64_t(listener.get()); }

const Waking wakings[] = {
    {"bytes", [](Set&, Pair& pair, Rsocket&, Rsocket&) { send(pair.client, "x"); }, the_server},
    {"the_end", [](Set&, Pair& pair, Rsocket&, Rsocket&) { pair.client.close(); }, the_server},
    {"half_the_end", [](Set&, Pair& pair, Rsocket&, Rsocket&) { ::rshutdown(pair.client.get(), SHUT_WR); },
     the_server},
    {"its_own_shutdown",
     [](Set&, Pair& pair, Rsocket&, Rsocket&) { ::rshutdown(pair.server.get(), SHUT_RD); }, the_server},
    {"a_connection",
     [](Set&, Pair&, Rsocket& listener, Rsocket& other) { EXPECT_EQ(connect(other, name_of(listener)), 0); },
     the_listener},
    {"another_question", [](Set& set, Pair& pair, Rsocket&, Rsocket&) { set.modify(pair.server, EPOLLOUT); },
     the_server},
    {"a_new_member",
     [](Set& set, Pair& pair, Rsocket&, Rsocket&) {
       EXPECT_EQ(set.control(EPOLL_CTL_DEL, pair.server.get()), 0);
       set.add(pair.server, EPOLLOUT);
     },
     the_server},
};

INSTANTIATE_TEST_SUITE_P(EventPoll, Wakes, testing::ValuesIn(wakings),
                         [](const auto& row) { return row.param.what; });

TEST(EventPoll, tells_of_a_connection_that_was_made_without_waiting_and_of_one_refused_before) {
  Rsocket listener = listening(), client = stream();
  set_blocking(client, false);
  const sockaddr_in nobody = name_of(listening());  // closed again
  Set set;
  for (const auto& [to, means] : {std::pair(nobody, ECONNREFUSED), std::pair(name_of(listener), 0)}) {
    if (connect(client, to) != 0) {
      EXPECT_EQ(errno, EINPROGRESS);
    }
    if (to.sin_port == nobody.sin_port) set.add(client, EPOLLOUT);
    std::vector<Told> told;
    for (;;) {  // the refused connection may still have an event, which does not matter here
      told = set.wait();
      pollfd one{.fd = client.get(), .events = POLLOUT, .revents = 0};
      if (!told.empty() && ::rpoll(&one, 1, 0) == 1) break;
    }
    EXPECT_EQ(value_of(client, SOL_SOCKET, SO_ERROR), means);
  }
  Rsocket server(::raccept(listener.get(), nullptr, nullptr));
  set.modify(client, EPOLLIN);
  auto waits = set.begin_wait();
  send(server, "x");
  EXPECT_THAT(waits.get(), ElementsAre(in(client)));
}

TEST(EventPoll, is_its_maker_s_alone_after_a_fork) {
  Pair pair;
  Set set;
  set.add(pair.server, EPOLLIN);
  const pid_t child = ::fork();
  if (child == 0) {
    epoll_event event{};
    const bool refused = ::repoll_wait(set.get(), &event, 1, 0) == -1 && errno == EBADF &&
                         ::repoll_ctl(set.get(), EPOLL_CTL_DEL, pair.server.get(), nullptr) == -1 &&
                         errno == EBADF;
    const bool closes = ::rclose(set.get()) == 0 && ::rclose(pair.server.get()) == 0;
    ::_exit(refused && closes ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  send(pair.client, "x");
  EXPECT_THAT(set.wait(), ElementsAre(in(pair.server))) << "the parent's goes on";
}

}  // namespace
}  // namespace weir::rsocket
