// Redis Sentinel fails over from a redis-server to this server and back, in its own network namespace,
// because Sentinel identifies servers by their TCP ports.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/kv/own_network.hpp"
#include "tests/kv/redis_server.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/replication_load.hpp"
#include "tests/kv/running_server.hpp"

namespace weir::kv::testing {
namespace {

constexpr std::uint16_t sentinel_port = 26379;
constexpr std::uint16_t redis_port = 6380;
constexpr std::uint16_t weir_port = 6381;

// It watches the server "data", with shorter timeouts than in a data centre.
class Sentinel {
 public:
  explicit Sentinel(std::uint16_t primary) {
    const std::string file = folder_.file("conf");
    std::ofstream(file) << "port " << sentinel_port << "\nbind 127.0.0.1\ndir " << folder_.path()
                        << "\nlogfile " << folder_.file("log") << "\nsentinel monitor data 127.0.0.1 "
                        << primary << " 1\nsentinel down-after-milliseconds data 500\n"
                        << "sentinel failover-timeout data 5000\n";
    pid_ = spawn_redis({file, "--sentinel"});
    await([] { return call({"PING"}) == "+PONG\r\n"; });
    call({"SENTINEL", "DEBUG", "info-period", "100", "ping-period", "100", "publish-period", "200"});
  }
  ~Sentinel() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  // Waits until it knows that port as a replica with the primary's data.
  void await_replica(std::uint16_t port) const {
    await([port] {
      const std::string replicas = call({"SENTINEL", "REPLICAS", "data"});
      const std::string name = "127.0.0.1:" + std::to_string(port);
      return replicas.find(name) != std::string::npos && replicas.find("\r\nok\r\n") != std::string::npos;
    });
  }
  void await_primary(std::uint16_t port) const {
    await([port] {
      const std::string address = call({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "data"});
      return address.find("\r\n" + std::to_string(port) + "\r\n") != std::string::npos;
    });
  }
  void fail_over() const {
    await([] { return call({"SENTINEL", "FAILOVER", "data"}) == "+OK\r\n"; });
  }

 private:
  static std::string call(const std::vector<std::string>& words) {
    try {
      return WireClient::tcp(sentinel_port).call(words);
    } catch (const std::runtime_error&) {  // it does not listen yet
      return {};
    }
  }
  template <class Reached>
  void await(Reached reached) const {
    for (int i = 0; i < 3000; ++i) {
      if (reached()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    std::ostringstream log;
    log << std::ifstream(folder_.file("log")).rdbuf();
    throw std::runtime_error("Sentinel does not come to it: " + log.str());
  }

  test::ScratchDirectory folder_;
  pid_t pid_ = 0;
};

TEST(Sentinel, fails_over_to_this_server_and_back) {
  if (!enter_own_network())
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  const std::vector<std::string> options{
      "--port", std::to_string(redis_port), "--bind", "127.0.0.1", "--repl-diskless-sync-delay",
      "0",      "--enable-debug-command",   "yes"};
  RedisServer redis(options);
  redis.connect().call({"SET", "k", "1"});
  Settings settings;
  settings.port = weir_port;
  settings.bind = "127.0.0.1";
  settings.enable_debug_command = 1;
  RunningServer weir(std::move(settings));
  ASSERT_EQ(weir.connect().call({"REPLICAOF", "127.0.0.1", std::to_string(redis_port)}), "+OK\r\n");
  Sentinel sentinel(redis_port);
  sentinel.await_replica(weir_port);
  redis.kill();
  sentinel.await_primary(weir_port);
  {
    WireClient ours = weir.connect();
    EXPECT_TRUE(ours.call({"ROLE"}).starts_with("*3\r\n$6\r\nmaster\r\n"));
    EXPECT_EQ(ours.call({"GET", "k"}), "$1\r\n1\r\n");
    EXPECT_EQ(ours.call({"SET", "k", "2"}), "+OK\r\n");
    redis.start(options);  // without its data, as a primary: Sentinel will correct that
    await_replicas(ours);
  }
  sentinel.await_replica(redis_port);
  sentinel.fail_over();
  sentinel.await_primary(redis_port);
  WireClient theirs = redis.connect();
  theirs.call({"SET", "k", "3"});
  await_replicas(theirs);
  WireClient ours = weir.connect();
  EXPECT_TRUE(ours.call({"ROLE"}).starts_with("*5\r\n$5\r\nslave\r\n"));
  EXPECT_EQ(ours.call({"GET", "k"}), "$1\r\n3\r\n");
  EXPECT_EQ(state_seen(ours), state_seen(theirs));
}

}  // namespace
}  // namespace weir::kv::testing
