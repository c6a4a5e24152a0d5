// The link between real processes: killed and forked ones, and what they leave behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "link/same_host.hpp"
#include "tests/link/fixture.hpp"
#include "tests/link/peer_protocol.hpp"
#include "tests/piped_child.hpp"

namespace weir::link {
namespace {

using namespace std::chrono_literals;

// link_peer, running. Ends it when destroyed.
class Peer {
 public:
  explicit Peer(const std::string& directory) : child_({LINK_PEER, directory}) {
    slot_ = static_cast<Slot>(std::atoi(child_.line().c_str()));
    EXPECT_NE(slot_, 0);
  }
  ~Peer() { finish(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  Slot slot() const { return slot_; }
  pid_t pid() const { return child_.pid(); }
  void kill() { ::kill(pid(), SIGKILL); }
  // Ends its input and waits; what it exited with, or -1 for a signal.
  int finish() {
    child_.end_input();
    const int status = child_.wait();
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void reap() { child_.wait(); }

 private:
  test::PipedChild child_;
  Slot slot_ = 0;
};

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename());
  return names;
}
std::string name_of(Slot slot) {
  char name[16];
  std::snprintf(name, sizeof name, "slot-%04u", slot);
  return name;
}

class Processes : public LinkTest {
 protected:
  std::unique_ptr<SameHostLink> attach_and_listen_for_the_end() {
    return attach({.gone = {[this](const NeighbourPtr& who) { gone_.set_value(who); }}});
  }
  NeighbourPtr gone() {
    auto future = gone_.get_future();
    EXPECT_EQ(future.wait_for(20s), std::future_status::ready);
    return future.get();
  }
  pid_t child_by(const NeighbourPtr& to, std::uint16_t how) {
    const auto answer = to->call(how, {}, 20s);
    EXPECT_TRUE(answer);
    pid_t child = 0;
    if (answer && answer->body.size() == sizeof child) std::memcpy(&child, answer->body.data(), sizeof child);
    EXPECT_GT(child, 0);
    return child;
  }
  std::promise<NeighbourPtr> gone_;
};

TEST_F(Processes, talk_and_part) {
  auto a = attach_and_listen_for_the_end();
  Peer peer(directory());
  const auto to_peer = connect(*a, peer.slot());
  EXPECT_EQ(to_peer->pid(), peer.pid());
  const auto answer = to_peer->call(peer::echo, bytes("across"), 20s);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_EQ(text(answer->body), "across");
  EXPECT_EQ(peer.finish(), 0);
  EXPECT_EQ(gone(), to_peer);
  EXPECT_THAT(entries(directory()), testing::Not(testing::Contains(name_of(peer.slot()))));
}

TEST_F(Processes, a_killed_one_is_gone_and_fails_the_call_that_waits_for_it) {
  auto a = attach_and_listen_for_the_end();
  Peer peer(directory());
  const auto to_peer = connect(*a, peer.slot());
  auto call = std::async(std::launch::async, [&] { return to_peer->call(peer::never_reply, {}, 60s); });
  ASSERT_TRUE(to_peer->call(peer::echo, {}, 20s));
  peer.kill();
  EXPECT_EQ(gone(), to_peer);
  EXPECT_EQ(call.get().error().code, std::errc::not_connected);
  EXPECT_EQ(a->connect(peer.slot(), 10s).error().code, std::errc::no_such_device_or_address);
}

TEST_F(Processes, a_killed_ones_slot_is_swept_by_the_next_to_attach) {
  auto a = attach();
  Slot dead;
  {
    Peer peer(directory());
    dead = peer.slot();
    peer.kill();
    peer.reap();
  }
  EXPECT_THAT(entries(directory()), testing::Contains(name_of(dead)));
  auto b = attach();
  EXPECT_NE(b->slot(), dead);  // its number may still be held by somebody
  EXPECT_THAT(entries(directory()), testing::Not(testing::Contains(name_of(dead))));
}

TEST_F(Processes, the_last_to_detach_sweeps_the_killed_and_leaves_nothing) {
  auto a = attach();
  {
    Peer peer(directory());
    peer.kill();
    peer.reap();
  }
  a.reset();
  EXPECT_FALSE(exists(directory()));
}

TEST_F(Processes, remains_of_processes_that_were_all_killed_are_no_obstacle) {
  for (int i = 0; i < 3; ++i) {
    Peer peer(directory());
    peer.kill();
    peer.reap();
  }
  EXPECT_TRUE(exists(directory()));
  attach().reset();
  EXPECT_FALSE(exists(directory()));
}

TEST_F(Processes, a_killed_one_is_gone_even_if_its_forked_child_lives) {
  auto a = attach_and_listen_for_the_end();
  Peer peer(directory());
  const auto to_peer = connect(*a, peer.slot());
  child_by(to_peer, peer::fork_lingering_child);
  peer.kill();
  EXPECT_EQ(gone(), to_peer);
  // The child closed its copy of the listening socket, so the slot is free.
  EXPECT_EQ(a->connect(peer.slot(), 10s).error().code, std::errc::no_such_device_or_address);
}

TEST_F(Processes, a_killed_one_is_gone_even_if_a_child_that_skipped_the_fork_handlers_holds_its_sockets) {
  auto a = attach_and_listen_for_the_end();
  Peer peer(directory());
  const auto to_peer = connect(*a, peer.slot());
  child_by(to_peer, peer::clone_lingering_child);
  peer.kill();
  EXPECT_EQ(gone(), to_peer);
  peer.reap();
  EXPECT_EQ(a->connect(peer.slot(), 10s).error().code, std::errc::no_such_device_or_address);
}

TEST_F(Processes, a_childs_exit_leaves_its_parents_attachment_whole) {
  auto a = attach();
  Peer peer(directory());
  const auto to_peer = connect(*a, peer.slot());
  child_by(to_peer, peer::fork_exiting_child);
  EXPECT_TRUE(to_peer->call(peer::echo, {}, 20s));
  EXPECT_THAT(entries(directory()), testing::Contains(name_of(peer.slot())));
  auto b = attach();
  EXPECT_TRUE(connect(*b, peer.slot())->call(peer::echo, {}, 20s));
}

// In the child nothing but exit codes can be checked; see the list for what each means.
TEST_F(Processes, in_a_forked_child_the_attachment_is_dead_and_a_fresh_one_works) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "TSan does not support threads in a forked child";
#endif
  auto a = attach({.messages = {echo(1)}}), b = attach({.messages = {echo(1)}});
  const auto to_b = connect(*a, b->slot());
  const pid_t child = ::fork();
  if (child == 0) {
    if (to_b->alive()) ::_exit(1);
    if (to_b->send(1, {}).error().code != std::errc::not_connected) ::_exit(2);
    if (to_b->call(1, {}, 1s).error().code != std::errc::not_connected) ::_exit(3);
    if (a->connect(b->slot(), 1s).error().code != std::errc::not_connected) ::_exit(4);
    if (a->at(Clock::now(), [] { ::_exit(5); }) != 0) ::_exit(6);
    a->post([] { ::_exit(7); });
    auto mine = SameHostLink::attach({.directory = directory()});
    if (!mine) ::_exit(8);
    const auto fresh = (*mine)->connect(b->slot(), 10s);
    if (!fresh || !(*fresh)->call(1, {}, 10s)) ::_exit(9);
    a.reset();
    b.reset();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(to_b->call(1, {}, 10s));
}

TEST_F(Processes, a_stopped_one_makes_connecting_time_out) {
  auto a = attach();
  Peer peer(directory());
  ::kill(peer.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(peer.pid(), &status, WUNTRACED), peer.pid());
  const auto refused = a->connect(peer.slot(), 50ms);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, std::errc::timed_out);
  ::kill(peer.pid(), SIGCONT);
  EXPECT_TRUE(a->connect(peer.slot(), 20s));
}

}  // namespace
}  // namespace weir::link
