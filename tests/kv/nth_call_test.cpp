// The n-th call of a function fails, and a stack is small: the server serves all the same, or says why it
// cannot and ends; and a signal always ends it.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>

#include "tests/kv/program.hpp"
#include "tests/kv/wire_client.hpp"
#include "tests/nth_call/calls.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::kv::testing {
namespace {

std::vector<std::string> serving(const test::ScratchDirectory& folder) {
  return {"--port",       "0",  "--unixsocket", folder.file("s"), "--dir", folder.path(), "--save", "",
          "--appendonly", "yes"};
}

// Has the server start a thread for a snapshot, and end.
void use(Program& server, const std::string& path) {
  WireClient client = WireClient::unix_socket(path);
  EXPECT_EQ(client.call({"SET", "k", std::string(5000, 'v')}), "+OK\r\n");
  EXPECT_EQ(client.call({"BGREWRITEAOF"}), "+Background append only file rewriting started\r\n");
  while (client.call({"INFO", "persistence"}).find("aof_rewrite_in_progress:1") != std::string::npos) {
  }
  EXPECT_EQ(client.call({"GET", "k"}).substr(0, 7), "$5000\r\n");
  server.signal(SIGTERM);
  EXPECT_NE(server.output().find("# stopped"), std::string::npos) << server.output();
  EXPECT_EQ(server.exit_code(), 0) << server.output();
}

class NthCall : public ::testing::TestWithParam<test::FailingCall> {};

TEST_P(NthCall, may_fail) {
  const test::FailingCall& call = GetParam();
  for (int n = 1; n <= call.calls; ++n) {
    const std::string order = call.order(n);
    SCOPED_TRACE(order);
    const test::ScratchDirectory folder;
    ::setenv("WEIR_FAILS", order.c_str(), 1);
    Program server(serving(folder), "LD_PRELOAD=" WEIR_FAILING_CALL);
    ::unsetenv("WEIR_FAILS");
    if (server.prints("Ready to accept connections")) {
      use(server, folder.file("s"));
    } else {
      EXPECT_NE(server.output().find("the server cannot go on: "), std::string::npos) << server.output();
      EXPECT_EQ(server.exit_code(), 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, NthCall, ::testing::ValuesIn(test::failing_calls),
                         [](const auto& instance) { return instance.param.name(); });

TEST(SmallStack, is_widened) {
  const test::ScratchDirectory folder;
  Program server(serving(folder), {}, "ulimit -S -s 64");
  ASSERT_TRUE(server.prints("Ready to accept connections")) << server.output();
  use(server, folder.file("s"));
}

TEST(SmallStack, that_cannot_be_widened_is_refused) {
  const test::ScratchDirectory folder;
  Program server(serving(folder), {}, "ulimit -s 64");
  EXPECT_NE(server.output().find("raise ulimit -s"), std::string::npos) << server.output();
  EXPECT_EQ(server.exit_code(), 1);
}

}  // namespace
}  // namespace weir::kv::testing
