// Under a seccomp filter that kills, a child finds out which calls it would kill for.
#include "link/filtered_calls.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>

namespace weir::link {
namespace {

constexpr std::array<long, 2> forbidden{SYS_process_vm_readv, SYS_getpid};
constexpr std::array<long, 2> allowed{SYS_process_vm_writev, SYS_getppid};

// Kills the process for the first of `forbidden`.
bool filter() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog whole{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) == 0;
}

// 0: `run` returned true in a child with that filter.
int in_filtered_child(const std::function<bool()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(!filter() ? 2 : run() ? 0 : 1);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(FilteredCalls, are_told_from_those_that_a_filter_allows) {
  EXPECT_EQ(in_filtered_child([] { return is_filtered(); }), 0);
  EXPECT_EQ(in_filtered_child([] { return !survives(forbidden); }), 0);
  EXPECT_EQ(in_filtered_child([] { return survives(allowed); }), 0);
}

TEST(FilteredCalls, are_asked_for_by_a_child_that_the_program_does_not_see) {
  EXPECT_EQ(in_filtered_child([] { return !survives(forbidden) && ::wait(nullptr) == -1; }), 0);
}

TEST(FilteredCalls, are_none_without_a_filter) {
  if (is_filtered()) GTEST_SKIP() << "this process has a filter";
  EXPECT_TRUE(survives(forbidden));
}

}  // namespace
}  // namespace weir::link
