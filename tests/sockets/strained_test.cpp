// No descriptor is left, or many forked children write at once. Runs under the preloaded library.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <map>
#include <thread>
#include <vector>

#include "tests/sockets/change_fixture.hpp"

namespace weir::sockets::test {
namespace {

using Strained = Change;

int status_of(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool exchanges(const TcpPair& pair, int times) {
  for (int i = 0; i < times; ++i)
    if (!send_all(pair.client, a_question) || receive(pair.server, a_question.size()) != a_question ||
        !send_all(pair.server, an_answer) || receive(pair.client, an_answer.size()) != an_answer)
      return false;
  return true;
}

TEST_F(Strained, bytes_go_on_while_no_descriptor_is_left) {
  for (const rlim_t most : {16u, 24u, 32u, 48u, 64u, 96u, 128u}) {
    SCOPED_TRACE(most);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit limit{.rlim_cur = most, .rlim_max = most};
      const TcpPair pair;
      if (pair.server < 0 || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) ::_exit(2);
      if (!exchanges(pair, 100)) ::_exit(3);
      while (::dup(0) >= 0) {
      }
      ::_exit(exchanges(pair, 300) ? 0 : 4);
    }
    EXPECT_EQ(status_of(child), 0);
  }
}

TEST_F(Strained, children_that_write_at_once_lose_nothing) {
  constexpr int children = 12, records = 100;
  std::vector<pid_t> all;
  for (char name = 'a'; name < 'a' + children; ++name) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::string record(8, name);
      bool sent = true;
      for (int i = 0; i < records && sent; ++i) sent = send_all(pair_.client, record);
      ::_exit(sent ? 0 : 1);
    }
    all.push_back(child);
  }
  std::thread writes([&] {
    for (int i = 0; i < records; ++i) EXPECT_TRUE(send_all(pair_.client, "parents."));
  });
  std::map<std::string, int> found;
  for (int i = 0; i < (children + 1) * records; ++i) ++found[receive(pair_.server, 8)];
  writes.join();
  for (const pid_t child : all) EXPECT_EQ(status_of(child), 0);
  EXPECT_EQ(found.size(), children + 1u);
  for (const auto& [record, times] : found) EXPECT_EQ(times, records) << record;
}

}  // namespace
}  // namespace weir::sockets::test
