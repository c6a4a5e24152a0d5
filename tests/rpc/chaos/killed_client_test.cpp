// A client is killed in the middle of a stream: its function is told, and nothing of the client remains.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "tests/rpc/chaos/endless.hpp"
#include "tests/rpc/rpc_fixture.hpp"

extern char** environ;

namespace chaos {

struct Seen {
  int echoed = 0;
  int ended = 0;
  weir::rpc::Errc cause{};
};
Seen seen;

asio::awaitable<void> endless(weir::rpc::Reader<std::string> in, weir::rpc::Writer<std::string> out) {
  for (;;) {
    const auto text = co_await in.read();
    if (!text) {
      seen.cause = text.error().code;
      break;
    }
    if (const auto written = co_await out.write(*text); !written) {
      seen.cause = written.error().code;
      break;
    }
    ++seen.echoed;
  }
  ++seen.ended;
}

}  // namespace chaos

namespace weir::rpc {
namespace {

class KilledClientChaosTest : public testing_support::RpcTest {
 protected:
  pid_t pid = -1;

  void spawn_client() {
    std::string program = WEIR_CHAOS_CLIENT;
    char* words[] = {program.data(), address.data(), nullptr};
    ASSERT_EQ(posix_spawn(&pid, program.c_str(), nullptr, nullptr, words, environ), 0) << program;
  }
  void kill_client() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = -1;
  }
  void TearDown() override { kill_client(); }
};

TEST_P(KilledClientChaosTest, killed_mid_stream_its_function_ends_and_nothing_is_left) {
  serve<chaos::endless>();
  for (int round = 0; round < 3; ++round) {
    chaos::seen = {};
    spawn_client();
    run_until([] { return chaos::seen.echoed > 100; });
    EXPECT_EQ(server->open(), 1u);
    kill_client();
    run_until([this] { return chaos::seen.ended == 1 && server->open() == 0; });
    EXPECT_NE(chaos::seen.cause, Errc::end_of_stream);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, KilledClientChaosTest, testing::Values("tcp", "unix", "rdma"),
                         testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
