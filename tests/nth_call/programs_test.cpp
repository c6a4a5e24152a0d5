// The n-th call of a function fails, in programs over the NIC, rdma/, rpc/ and tensor/: each does what it is
// for all the same, or ends and says why. None hangs, and none is killed by a signal.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "link/unique_fd.hpp"
#include "tests/nth_call/calls.hpp"

namespace weir::test {
namespace {

struct Example {
  const char* name;
  std::vector<std::string> words;
  const char* result;
  int times = 1;  // the calls of the list: a program over the NIC makes more of them before its own
};

const std::vector<Example>& examples() {
  static const std::vector<Example> all = {
      {"rdma_stream", {WEIR_RDMA_ECHO}, "hello over RDMA", 4},
      {"rdma_channel", {WEIR_RDMA_MESSAGES}, "15 bytes", 4},
      {"rpc_tcp", {WEIR_RPC_ECHO}, "hello over tcp://"},
      {"rpc_rdma", {WEIR_RPC_ECHO, "rdma://127.0.0.1:0"}, "hello over rdma://", 4},
      {"tensor", {WEIR_TENSOR_EXAMPLE}, "version 2: 24 bytes", 4},
  };
  return all;
}

struct Outcome {
  std::string output;
  int status = -1;
  bool hung = false;
};

Outcome run(const std::vector<std::string>& words) {
  constexpr std::chrono::seconds longest{30};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const link::UniqueFd output(ends[0]);
  link::UniqueFd input(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, input.get(), STDERR_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));  // NOLINT
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  input.reset();
  Outcome outcome;
  if (failed != 0) return outcome;
  const auto deadline = std::chrono::steady_clock::now() + longest;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd readable{output.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0) {
      outcome.hung = true;
      ::kill(pid, SIGKILL);
      break;
    }
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(output.get(), bytes.data(), bytes.size());
    if (got <= 0) break;
    outcome.output.append(bytes.data(), static_cast<std::size_t>(got));
  }
  ::waitpid(pid, &outcome.status, 0);
  return outcome;
}

class NthCallOf : public testing::TestWithParam<std::tuple<Example, FailingCall>> {};

TEST_P(NthCallOf, may_fail) {
  const auto& [example, call] = GetParam();
  for (int n = 1; n <= call.calls * example.times; ++n) {
    SCOPED_TRACE(call.order(n));
    ::setenv("WEIR_FAILS", call.order(n).c_str(), 1);
    ::setenv("LD_PRELOAD", WEIR_FAILING_CALL, 1);
    const Outcome outcome = run(example.words);
    ::unsetenv("LD_PRELOAD");
    ::unsetenv("WEIR_FAILS");
    ASSERT_FALSE(outcome.hung) << outcome.output;
    ASSERT_TRUE(WIFEXITED(outcome.status))
        << "killed by signal " << WTERMSIG(outcome.status) << ": " << outcome.output;
    if (outcome.output.find(example.result) == std::string::npos) {
      EXPECT_NE(WEXITSTATUS(outcome.status), 0) << outcome.output;
      EXPECT_FALSE(outcome.output.empty()) << "it does not say why";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, NthCallOf,
                         testing::Combine(testing::ValuesIn(examples()), testing::ValuesIn(failing_calls)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) + "_" +
                                  std::get<1>(instance.param).name();
                         });

}  // namespace
}  // namespace weir::test
