// Packets between users, in a network namespace of its own, because slots are names there. Both ends live in
// this process and are told that their users differ; an end that must not be believed is a separate process.
#include "link/users/user_port.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "link/users/group_members.hpp"

namespace weir::link {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Process = UserPort::Process;

constexpr int patience_ms = 20'000;  // a backstop

// Once, before there is a second thread.
bool alone_with_its_names() {
  static const bool entered = ::unshare(CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
  return entered;
}

bool readable(int fd) {
  pollfd state{fd, POLLIN | POLLRDHUP, 0};
  return ::poll(&state, 1, patience_ms) == 1;
}

std::vector<std::byte> numbered(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

struct Came {
  std::vector<std::byte> bytes;
  UserPort::Arrival arrival;
};

// A process's end: its slot's name, and the packets that arrived.
struct End {
  explicit End(Slot in, uid_t own_user = ::geteuid() + 1) : slot(in) {
    auto held = hold_name(name_of_slot(slot));
    EXPECT_TRUE(held) << "slot " << slot << " is taken";
    if (!held) return;
    name = std::move(*held);
    auto opened = UserPort::open(
        {.slot_socket = name.get(), .slot = slot, .user = own_user, .gone = [this](Process who) {
           gone.push_back(who);
         }});
    EXPECT_TRUE(opened) << opened.error().what;
    if (opened) port = std::move(*opened);
  }
  void receive() {
    port->receive([this](std::span<const UserPort::Arrival> arrivals) {
      for (const auto& each : arrivals)
        came.push_back({{each.run.bytes.begin(), each.run.bytes.end()}, each});
    });
  }
  template <class Done>
  void receive_until(Done done) {
    while (!done() && readable(port->descriptor())) receive();
    EXPECT_TRUE(done());
  }
  int send(Process to, std::span<const std::byte> bytes, std::uint16_t segment = 1000) {
    return port->send(to, {.bytes = bytes, .segment = segment, .traffic_class = 3, .hop_limit = 64});
  }

  Slot slot;
  UniqueFd name;
  std::unique_ptr<UserPort> port;
  std::vector<Came> came;
  std::vector<Process> gone;
};

class Users : public testing::Test {
 protected:
  void SetUp() override {
    if (!alone_with_its_names()) GTEST_SKIP() << "this machine lets its user have no network namespace";
  }
};

TEST_F(Users, carry_runs_both_ways_and_know_who_sent_them) {
  End one(1), other(2);
  const Process there = one.port->process_in(2);
  ASSERT_NE(there, 0u);
  EXPECT_EQ(one.port->process_in(2), there) << "a second connection to one process";
  const auto longest = numbered(max_carried_bytes), shortest = numbered(16);
  ASSERT_EQ(one.send(there, longest, 4000), 0);
  ASSERT_EQ(one.send(there, shortest), 0);
  other.receive_until([&] { return other.came.size() == 2; });
  EXPECT_EQ(other.came[0].bytes, longest);
  EXPECT_EQ(other.came[1].bytes, shortest);
  const UserPort::Arrival& first = other.came[0].arrival;
  EXPECT_EQ(first.run.segment, 4000);
  EXPECT_EQ(first.run.traffic_class, 3);
  EXPECT_EQ(first.run.hop_limit, 64);
  EXPECT_EQ(first.slot, 1);
  EXPECT_EQ(first.from, other.port->process_in(1));
  ASSERT_EQ(other.send(first.from, shortest), 0);
  one.receive_until([&] { return !one.came.empty(); });
  EXPECT_EQ(one.came[0].arrival.from, there);
}

TEST_F(Users, know_whether_those_they_sent_to_have_called_back) {
  End one(1), other(2);
  std::optional<End> third(std::in_place, 3);
  const Process there = one.port->process_in(2);
  EXPECT_FALSE(one.port->waits_to_be_believed()) << "nothing was sent";
  ASSERT_EQ(one.send(there, numbered(100)), 0);
  EXPECT_TRUE(one.port->waits_to_be_believed());
  other.receive_until([&] { return other.came.size() == 1; });
  one.receive_until([&] { return !one.port->waits_to_be_believed(); });
  ASSERT_EQ(one.send(one.port->process_in(3), numbered(100)), 0);
  EXPECT_TRUE(one.port->waits_to_be_believed());
  third.reset();
  EXPECT_FALSE(one.port->waits_to_be_believed()) << "it has ended, and will not call";
}

TEST_F(Users, of_ones_own_are_not_reached) {
  End one(1, ::geteuid()), other(2);
  EXPECT_EQ(one.port->process_in(2), 0u);
  EXPECT_EQ(one.port->process_in(1), 0u) << "itself";
  EXPECT_EQ(one.port->process_in(3), 0u) << "nobody";
  EXPECT_EQ(one.port->process_in(0), 0u);
  EXPECT_EQ(one.port->process_in(max_slots), 0u);
  ASSERT_TRUE(other.port->listen("weir-port-tcp-1"));
  EXPECT_FALSE(one.port->find("weir-port-tcp-1", [](Process) {}));
}

TEST_F(Users, who_has_ended_is_told_of_behind_the_last_packet_and_never_mistaken_for_its_successor) {
  End one(1);
  std::optional<End> other(std::in_place, 2);
  const Process first = one.port->process_in(2);
  const Process back = other->port->process_in(1);
  other->receive();
  ASSERT_EQ(other->send(back, numbered(100)), 0);
  other.reset();
  one.receive_until([&] { return !one.gone.empty(); });
  EXPECT_THAT(one.gone, ElementsAre(first));
  ASSERT_EQ(one.came.size(), 1u) << "what it had sent before is lost";
  EXPECT_EQ(one.came[0].arrival.from, first);
  EXPECT_EQ(one.send(first, numbered(100)), ENOTCONN);

  End successor(2);
  const Process second = one.port->process_in(2);
  EXPECT_NE(second, 0u);
  EXPECT_NE(second, first);
  EXPECT_EQ(one.send(first, numbered(100)), ENOTCONN);
  ASSERT_EQ(successor.send(successor.port->process_in(1), numbered(100)), 0);
  one.receive_until([&] { return one.came.size() == 2; });
  EXPECT_EQ(one.came[1].arrival.from, second);
  EXPECT_THAT(one.gone, ElementsAre(first));
}

// The place is taken again before anybody has received the news.
TEST_F(Users, a_slot_that_changed_hands_unnoticed_leads_to_its_new_process) {
  End one(1);
  std::optional<End> other(std::in_place, 2);
  const Process first = one.port->process_in(2);
  other.reset();
  End successor(2);
  const Process second = one.port->process_in(2);
  EXPECT_NE(second, first);
  ASSERT_EQ(one.send(second, numbered(50)), 0);
  successor.receive_until([&] { return !successor.came.empty(); });
  one.receive_until([&] { return !one.gone.empty(); });
  EXPECT_THAT(one.gone, ElementsAre(first));
  EXPECT_EQ(one.port->process_in(2), second);
}

TEST_F(Users, a_full_socket_loses_a_run_and_disturbs_nobody_else) {
  End one(1), stopped(2), other(3);
  const Process full = one.port->process_in(2);
  const auto run = numbered(60'000);
  int error = 0;
  for (int runs = 0; error == 0 && runs < 10'000; ++runs) error = one.send(full, run);
  EXPECT_EQ(error, EAGAIN);
  ASSERT_EQ(one.send(one.port->process_in(3), run), 0);
  other.receive_until([&] { return !other.came.empty(); });
  EXPECT_EQ(other.came[0].bytes, run);
}

TEST_F(Users, find_a_service_and_whose_it_is) {
  End one(1), other(2), third(3);
  const std::string service = "weir-port-tcp-7471";
  EXPECT_FALSE(one.port->find(service, [](Process) {})) << "nobody has it";
  ASSERT_TRUE(other.port->listen(service));
  ASSERT_TRUE(other.port->listen(service));
  EXPECT_FALSE(third.port->listen(service)) << "it is another's";
  EXPECT_EQ(third.port->other_user_with(service), ::geteuid());
  EXPECT_EQ(End(4, ::geteuid()).port->other_user_with(service), std::nullopt) << "it is its own user's";
  EXPECT_EQ(third.port->other_user_with("weir-port-tcp-7472"), std::nullopt);
  std::vector<Process> found;
  const auto note = [&](Process who) { found.push_back(who); };
  ASSERT_TRUE(one.port->find(service, note));
  ASSERT_TRUE(readable(other.port->descriptor()));
  other.receive();
  one.receive_until([&] { return !found.empty(); });
  EXPECT_THAT(found, ElementsAre(one.port->process_in(2)));
  other.port->leave(service);
  ASSERT_TRUE(one.port->find(service, note)) << "it was listened to twice";
  other.port->leave(service);
  one.receive_until([&] { return found.size() == 2; });
  EXPECT_EQ(found[1], 0u) << "who has left it was found";
  EXPECT_FALSE(one.port->find(service, note));
  EXPECT_TRUE(third.port->listen(service));
}

constexpr GroupMembers::Group group_1 = {0xff, 0x15, 1}, group_2 = {0xff, 0x15, 2};

TEST_F(Users, see_who_is_in_a_group_and_again_after_a_while) {
  End one(1), other(2), third(3), our_own(4, ::geteuid());
  GroupMembers ours(*one.port), others(*other.port), thirds(*third.port), own_users(*our_own.port);
  Clock::time_point now{};
  const auto members = [&](const GroupMembers::Group& group, GroupMembers& seen_by) {
    std::vector<Process> all;
    seen_by.append(group, now, all);
    return all;
  };
  ASSERT_TRUE(others.join(group_1));
  ASSERT_TRUE(others.join(group_1)) << "a second queue pair";
  const auto second = one.port->process_in(2), third_process = one.port->process_in(3);
  EXPECT_THAT(members(group_1, ours), ElementsAre(second));
  EXPECT_THAT(members(group_2, ours), IsEmpty());
  EXPECT_THAT(members(group_1, own_users), IsEmpty()) << "they meet in their directory";
  ASSERT_TRUE(thirds.join(group_1));
  others.leave(group_1);
  now += GroupMembers::look_interval - std::chrono::milliseconds(1);
  EXPECT_THAT(members(group_1, ours), ElementsAre(second)) << "it looked again too soon";
  now += std::chrono::milliseconds(1);
  EXPECT_THAT(members(group_1, ours), testing::UnorderedElementsAre(second, third_process));
  others.leave(group_1);
  now += GroupMembers::look_interval;
  EXPECT_THAT(members(group_1, ours), ElementsAre(third_process));
}

TEST_F(Users, whose_name_in_a_group_is_taken_cannot_join) {
  End one(1), other(2);
  GroupMembers ours(*one.port);
  ASSERT_TRUE(ours.join(group_2));
  UserPort& port = *other.port;
  ASSERT_TRUE(port.listen("weir-group-ff150100000000000000000000000000-1")) << "a made-up name";
  EXPECT_FALSE(ours.join(group_1));
}

// ---- strangers

// The test's own socket, bound as slot 1.
struct Caller {
  explicit Caller(const std::string& name = name_of_slot(1)) {
    auto connected = connect_to_name(name);
    EXPECT_TRUE(connected);
    if (connected) socket = std::move(*connected);
  }
  void say(std::span<const std::byte> message) const {
    EXPECT_EQ(::send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(message.size()));
  }
  bool closed() const {
    pollfd state{socket.get(), POLLRDHUP, 0};
    return ::poll(&state, 1, 0) == 1;
  }
  UniqueFd socket;
};

// Listens as slot 9, so that its greeting is true.
struct Slot9 {
  Slot9() {
    auto held = hold_name(name_of_slot(9));
    EXPECT_TRUE(held && ::listen(held->get(), 16) == 0);
    if (held) socket = std::move(*held);
  }
  UniqueFd socket;
};

struct Bad {
  const char* what;
  std::vector<std::byte> message;
  friend void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.what; }
};

std::vector<std::byte> message_of(const CarriedRun& run) {
  const auto header = encode_run_header(run);
  std::vector<std::byte> message(header.begin(), header.end());
  message.insert(message.end(), run.bytes.begin(), run.bytes.end());
  return message;
}

std::vector<std::byte> changed(std::vector<std::byte> message, std::size_t at) {
  message[at] ^= std::byte{0x40};
  return message;
}

std::vector<std::byte> first_of(const std::vector<std::byte>& message, std::size_t bytes) {
  return {message.begin(), message.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

const std::vector<std::byte> some = numbered(2000), too_long = numbered(max_carried_bytes + 1);
const std::vector<std::byte> good = message_of({.bytes = some, .segment = 1000});

std::vector<std::byte> greeting_of(Slot slot) {
  const auto greeting = encode_greeting(slot);
  return {greeting.begin(), greeting.end()};
}

class BadMessages : public Users, public testing::WithParamInterface<Bad> {};

INSTANTIATE_TEST_SUITE_P(
    All, BadMessages,
    testing::Values(Bad{"nothing", {}}, Bad{"one byte", first_of(good, 1)},
                    Bad{"a cut header", first_of(good, run_header_bytes - 1)},
                    Bad{"a header alone", first_of(good, run_header_bytes)},
                    Bad{"another kind", changed(good, 0)},
                    Bad{"packets of no length", message_of({.bytes = some, .segment = 0})},
                    Bad{"packets shorter than their headers", message_of({.bytes = some, .segment = 15})},
                    Bad{"too many packets", message_of({.bytes = some, .segment = 30})},
                    Bad{"too long a run", message_of({.bytes = too_long, .segment = 4000})},
                    Bad{"another greeting", greeting_of(9)}));

TEST_P(BadMessages, end_the_connection_and_nothing_of_them_is_taken) {
  End one(1);
  const Slot9 callers_slot;
  const Caller caller;
  caller.say(greeting_of(9));
  caller.say(good);
  one.receive_until([&] { return one.came.size() == 1; });
  caller.say(GetParam().message);
  caller.say(good);
  one.receive_until([&] { return caller.closed(); });
  EXPECT_EQ(one.came.size(), 1u);
}

class BadGreetings : public Users, public testing::WithParamInterface<Bad> {};

INSTANTIATE_TEST_SUITE_P(
    All, BadGreetings,
    testing::Values(Bad{"none", good}, Bad{"nothing", {}}, Bad{"a cut one", first_of(greeting_of(9), 7)},
                    Bad{"a long one", first_of(good, 9)}, Bad{"another kind", changed(greeting_of(9), 1)},
                    Bad{"of the future", changed(greeting_of(9), 7)}, Bad{"of slot 0", greeting_of(0)},
                    Bad{"of no slot", greeting_of(max_slots)}, Bad{"of our own slot", greeting_of(1)},
                    Bad{"of a slot that nobody is in", greeting_of(8)}));

TEST_P(BadGreetings, are_not_believed) {
  End one(1);
  const Slot9 callers_slot;
  const Caller caller;
  caller.say(GetParam().message);
  caller.say(good);
  one.receive_until([&] { return caller.closed(); });
  EXPECT_THAT(one.came, IsEmpty());
}

TEST_F(Users, who_says_another_process_is_its_slots_is_not_believed) {
  End one(1), other(2);
  const pid_t liar = ::fork();
  if (liar == 0) {
    const Caller caller;
    caller.say(greeting_of(2));
    (void)::send(caller.socket.get(), good.data(), good.size(), MSG_NOSIGNAL);  // it may be closed by now
    ::_exit(readable(caller.socket.get()) && caller.closed() ? 0 : 1);
  }
  int status = -1;
  while (::waitpid(liar, &status, WNOHANG) == 0)
    if (pollfd state{one.port->descriptor(), POLLIN, 0}; ::poll(&state, 1, 10) == 1) one.receive();
  EXPECT_EQ(status, 0) << "it was let stay";
  EXPECT_THAT(one.came, IsEmpty());
}

TEST_F(Users, a_second_connection_of_one_process_is_refused) {
  End one(1);
  const Slot9 callers_slot;
  const Caller first, second;
  first.say(greeting_of(9));
  first.say(good);
  one.receive_until([&] { return one.came.size() == 1; });
  second.say(greeting_of(9));
  second.say(good);
  one.receive_until([&] { return second.closed(); });
  EXPECT_FALSE(first.closed());
  EXPECT_EQ(one.came.size(), 1u);
}

TEST_F(Users, silent_callers_make_room_for_one_another) {
  End one(1);
  const Slot9 callers_slot;
  std::vector<Caller> silent;
  for (std::size_t i = 0; i < UserPort::max_strangers; ++i) {
    silent.emplace_back();
    one.receive();
  }
  EXPECT_FALSE(silent.front().closed());
  const Caller honest;
  honest.say(greeting_of(9));
  honest.say(good);
  one.receive_until([&] { return one.came.size() == 1; });
  EXPECT_TRUE(silent.front().closed());
  EXPECT_FALSE(silent.back().closed());
}

TEST_F(Users, silent_callers_of_one_user_push_out_no_other_users) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t attackers_user = 1001;
  End one(1);
  const Slot9 callers_slot;
  const Caller patient;
  one.receive();
  std::vector<Caller> silent;
  ASSERT_EQ(::seteuid(attackers_user), 0);
  for (std::size_t i = 0; i < 2 * UserPort::max_strangers; ++i) {
    silent.emplace_back();
    one.receive();
  }
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(silent.front().closed());
  patient.say(greeting_of(9));
  patient.say(good);
  one.receive_until([&] { return one.came.size() == 1; });
}

TEST_F(Users, what_a_child_of_a_fork_holds_keeps_nobody_alive) {
  End one(1);
  std::optional<End> other(std::in_place, 2);
  const Process there = one.port->process_in(2);
  other->receive();
  int hold[2];
  ASSERT_EQ(::pipe(hold), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte;
    other->name.reset();  // the link's to close
    ::close(hold[1]);
    ::_exit(::read(hold[0], &byte, 1) == 0 ? 0 : 1);
  }
  other.reset();
  one.receive_until([&] { return !one.gone.empty(); });
  EXPECT_THAT(one.gone, ElementsAre(there));
  ::close(hold[0]);
  ::close(hold[1]);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
}

}  // namespace
}  // namespace weir::link
