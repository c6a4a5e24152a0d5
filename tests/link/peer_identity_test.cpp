// Whether two connections come from one process. A pid alone does not say: a process may have ended, and its
// child kept the connection, before another got the number.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "link/abstract_socket.hpp"

namespace weir::link {
namespace {

TEST(PeerIdentity, says_whether_ends_are_one_process) {
  struct Row {
    const char* what;
    Identity one, other;
    bool same;
  };
  const Row rows[] = {
      {"one process", {1, 7, 50}, {1, 7, 50}, true},
      {"its user changed", {0, 7, 50}, {1, 7, 50}, true},
      {"the pid passed on", {1, 7, 50}, {1, 7, 51}, false},
      {"an older kernel", {1, 7, 0}, {2, 7, 0}, true},
      {"an older kernel, two processes", {1, 7, 0}, {1, 8, 0}, false},
      {"one has ended, of the same user", {1, 7, 0}, {1, 7, 51}, true},
      {"one has ended, of another user", {1, 7, 0}, {2, 7, 51}, false},
      {"in another pid namespace", {1, 0, 0}, {1, 7, 0}, true},
      {"of users who are not mapped", {nobody_known, 0, 0}, {nobody_known, 0, 0}, false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(same_process(row.one, row.other), row.same) << row.what;
    EXPECT_EQ(same_process(row.other, row.one), row.same) << row.what;
  }
}

constexpr char listener_name[] = "weir-test-peer-identity";
constexpr pid_t number = 100;

// A child with that number, in a pid namespace of ours.
pid_t start_numbered(const std::function<void()>& run) {
  clone_args arguments{};
  pid_t wanted = number;
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<std::uint64_t>(&wanted);
  arguments.set_tid_size = 1;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (child == 0) {
    run();
    ::_exit(0);
  }
  return child;
}

UniqueFd accept_one(int listener) {
  UniqueFd socket(::accept(listener, nullptr, nullptr));
  return socket;
}

enum Outcome { same, different, refused };

// As the first process of its pid namespace, whose end ends all others there.
Outcome compare_predecessor_and_successor(int listener) {
  const pid_t first = start_numbered([] {
    const auto socket = connect_to_name(listener_name);
    if (::fork() == 0) ::pause();  // which keeps the connection
  });
  if (first != number) return refused;
  const UniqueFd of_first = accept_one(listener);
  const auto before = identity_of_peer(of_first.get());  // as a server that accepts at once
  ::waitpid(first, nullptr, 0);
  const pid_t second = start_numbered([] {
    const auto socket = connect_to_name(listener_name);
    ::pause();
  });
  if (second != number) return refused;
  const UniqueFd of_second = accept_one(listener);
  const auto after = identity_of_peer(of_second.get());
  if (!before || !after || before->pid != after->pid || after->unique == 0) return refused;
  return same_process(*before, *after) ? same : different;
}

TEST(PeerIdentity, a_successor_with_the_same_pid_is_another_process) {
  const pid_t outer = ::fork();
  if (outer == 0) {
    if (::unshare(CLONE_NEWNET | CLONE_NEWPID) != 0 &&
        ::unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID) != 0)
      ::_exit(refused);
    const auto listener = hold_name(listener_name);
    if (!listener || ::fcntl(listener->get(), F_SETFL, 0) != 0 || ::listen(listener->get(), 4) != 0)
      ::_exit(refused);
    const pid_t init = ::fork();
    if (init == 0) ::_exit(compare_predecessor_and_successor(listener->get()));
    int status = 0;
    ::waitpid(init, &status, 0);
    ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : refused);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(outer, &status, 0), outer);
  if (WEXITSTATUS(status) == refused)
    GTEST_SKIP() << "needs a pid namespace, chosen pids, and a kernel that tells processes apart (Linux 6.9)";
  EXPECT_EQ(WEXITSTATUS(status), different);
}

}  // namespace
}  // namespace weir::link
