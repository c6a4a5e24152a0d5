// Ten thousand RDMA connections to one server from another process: both ends in one process would need more
// queue pairs than a process can have. Label slow.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/read_until.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <fstream>
#include <string>

#include "tests/rpc/rpc_fixture.hpp"

extern char** environ;

namespace weir::rpc {
namespace {

// The clients in their own process, killed if the test leaves early.
class Clients {
 public:
  Clients(asio::io_context& io, std::string address, std::string count) : output_(io) {
    int words[2], go[2];
    if (pipe2(words, O_CLOEXEC) != 0 || pipe2(go, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    output_.assign(words[0]);
    go_ = go[1];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, words[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, go[0], STDIN_FILENO);
    std::string program = WEIR_CROWD_CLIENT;
    char* arguments[] = {program.data(), address.data(), count.data(), nullptr};
    const int failed = posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(words[1]);
    ::close(go[0]);
    if (failed != 0) throw std::runtime_error("cannot start " + program);
  }
  ~Clients() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Clients(const Clients&) = delete;
  Clients& operator=(const Clients&) = delete;

  // Their output: empty if they ended without printing.
  asio::awaitable<std::string> line() {
    std::string line;
    std::error_code end;
    co_await asio::async_read_until(output_, asio::dynamic_buffer(line), '\n',
                                    asio::redirect_error(asio::use_awaitable, end));
    co_return line;
  }

  void let_go() { ::close(std::exchange(go_, -1)); }
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  asio::posix::stream_descriptor output_;
  int go_ = -1;
  pid_t pid_ = -1;
};

std::size_t resident_bytes() {
  std::size_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class Crowd : public testing_support::RpcTest {};

TEST_P(Crowd, slow_ten_thousand_connections_are_served) {
  constexpr std::size_t count = 10'000;
  share_receives = true;
  ServerLimits limits;
  limits.max_connections = count;
  serve<shop::nothing>(limited(limits));
  const std::size_t before = resident_bytes();
  {
    Clients clients(io, address, std::to_string(count));
    std::string line;
    run([&]() -> asio::awaitable<void> { line = co_await clients.line(); });
    EXPECT_EQ(line, "10000 10000\n") << "calls answered, one by one and together";
    EXPECT_EQ(server->open(), count);
    const std::size_t each = (resident_bytes() - before) / count;
    std::printf("%zu connections: %zu bytes resident each at the server\n", count, each);
    EXPECT_LT(each, 64u << 10);
    clients.let_go();
    run_until([this] { return server->open() == 0; });
    EXPECT_EQ(clients.wait(), 0);
  }
  run_until([this] { return engine->stats().connections == 0; });
}

INSTANTIATE_TEST_SUITE_P(Over, Crowd, testing::Values("rdma"), testing_support::transport_name);

}  // namespace
}  // namespace weir::rpc
