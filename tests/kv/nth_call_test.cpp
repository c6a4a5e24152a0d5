// The n-th call of a function fails, and a stack is small: the server serves all the same, or says why it
// cannot and ends; and a signal always ends it.
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>

#include "tests/kv/program.hpp"
#include "tests/kv/wire_client.hpp"
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

struct Call {
  const char* function;
  int error;
  int calls;  // each of the first so many fails once
  bool all;   // and all from there on
};

class NthCall : public ::testing::TestWithParam<Call> {};

TEST_P(NthCall, may_fail) {
  const Call& call = GetParam();
  for (int n = 1; n <= call.calls; ++n) {
    const std::string order = std::string(call.function) + ' ' + std::to_string(n) + ' ' +
                              std::to_string(call.error) + (call.all ? " 1000000" : " 1");
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

INSTANTIATE_TEST_SUITE_P(
    Of, NthCall,
    ::testing::Values(Call{"mmap", ENOMEM, 3, false}, Call{"mmap", ENOMEM, 2, true},
                      Call{"epoll_create1", EMFILE, 2, false}, Call{"epoll_ctl", ENOSPC, 6, false},
                      Call{"fcntl", EINVAL, 3, false}, Call{"read", EIO, 4, false},
                      Call{"signalfd", EMFILE, 1, false}, Call{"pthread_create", EAGAIN, 2, false},
                      Call{"pthread_create", EAGAIN, 1, true}),
    [](const auto& instance) {
      return std::string(instance.param.function) + (instance.param.all ? "_and_later" : "");
    });

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
