// A planned stop costs nothing: a primary waits for its replicas, goes on after its restart where it was, and
// changes places with a replica. weir-server and Debian's redis-server as programs, in either role.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <chrono>

#include "tests/kv/redis_program.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/wire_client.hpp"
#include "tests/scratch_directory.hpp"

extern char** environ;

namespace weir::kv::testing {
namespace {

enum class Kind : std::uint8_t { weir, redis };

std::string unused_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port");
  ::close(fd);
  return std::to_string(ntohs(address.sin_port));
}

// A server that may be stopped and started again; it keeps its port and its folder.
class Node {
 public:
  explicit Node(Kind kind, std::vector<std::string> options = {})
      : kind_(kind), options_(std::move(options)), port_(unused_port()) {
    start();
  }
  ~Node() { kill(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void start() {
    std::vector<std::string> words{program(),      "--port",    port_, "--bind", "127.0.0.1", "--dir",
                                   folder_.path(), "--logfile", "log", "--save", "3600 1"};
    if (kind_ == Kind::redis)
      words.insert(words.end(), {"--repl-diskless-sync-delay", "0", "--appendonly", "no"});
    words.insert(words.end(), options_.begin(), options_.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    if (::posix_spawnp(&pid_, pointers[0], nullptr, nullptr, pointers.data(), environ) != 0)
      throw std::runtime_error(words[0] + " does not run");
    for (int i = 0; i < 2000 && !answers(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  void signal(int number) const { ::kill(pid_, number); }
  int exit_code() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void kill() {
    if (pid_ == 0) return;
    signal(SIGKILL);
    exit_code();
  }
  WireClient connect() const { return WireClient::tcp(static_cast<std::uint16_t>(std::stoi(port_))); }
  const std::string& port() const { return port_; }
  std::vector<std::string> as_primary() const { return {"--replicaof", "127.0.0.1 " + port_}; }

 private:
  std::string program() const { return kind_ == Kind::weir ? WEIR_SERVER : redis_program(); }
  bool answers() const {
    try {
      return connect().call({"PING"}) == "+PONG\r\n";
    } catch (const std::runtime_error&) {
      return false;
    }
  }

  test::ScratchDirectory folder_;
  Kind kind_;
  std::vector<std::string> options_;
  std::string port_;
  pid_t pid_ = 0;
};

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void await_fact(Node& node, const std::string& section, const std::string& name, const std::string& value) {
  WireClient client = node.connect();
  while (fact(client, section, name) != value) std::this_thread::yield();
}

void await_size(Node& node, const std::string& size) {
  WireClient client = node.connect();
  while (client.call({"DBSIZE"}) != ':' + size + "\r\n") std::this_thread::yield();
}

TEST(PlannedStop, loses_no_write_that_a_replica_has_not_got_yet) {
  const struct {
    Kind replica;
    bool by_signal;
  } rows[] = {{Kind::weir, true}, {Kind::weir, false}, {Kind::redis, true}};
  for (const auto& row : rows) {
    Node primary(Kind::weir);
    Node replica(row.replica, primary.as_primary());
    WireClient client = primary.connect();
    client.call({"SET", "first", "1"});
    await_replicas(client);
    replica.signal(SIGSTOP);
    const std::string large(500'000, 'x');
    for (int i = 0; i < 40; ++i) client.call({"SET", 'k' + std::to_string(i), large});
    client.call({"SET", "last", "1"});
    if (row.by_signal) {
      primary.signal(SIGTERM);
    } else {
      primary.connect().send("SHUTDOWN\r\n");
    }
    while (client.call({"INFO", "server"}).find("shutdown_in_milliseconds:") == std::string::npos)
      std::this_thread::yield();
    replica.signal(SIGCONT);
    EXPECT_EQ(primary.exit_code(), 0);
    await_size(replica, "42");
    EXPECT_EQ(replica.connect().call({"GET", "last"}), "$1\r\n1\r\n");
  }
}

TEST(PlannedStop, of_a_primary_costs_no_replica_a_snapshot) {
  for (const char* keeps_log : {"no", "yes"}) {
    SCOPED_TRACE(keeps_log);
    Node primary(Kind::weir, {"--appendonly", keeps_log});
    Node ours(Kind::weir, primary.as_primary());
    Node theirs(Kind::redis, primary.as_primary());
    {
      WireClient client = primary.connect();
      for (int i = 0; i < 500; ++i) client.call({"SET", 'k' + std::to_string(i), "v"});
      client.call({"SET", "short", "1", "PX", "1"});
      await_replicas(client, "2");
    }
    for (int round = 1; round <= 2; ++round) {
      primary.signal(SIGTERM);
      EXPECT_EQ(primary.exit_code(), 0);
      primary.start();
      WireClient client = primary.connect();
      await_replicas(client, "2");
      EXPECT_EQ(fact(client, "stats", "sync_full"), "0");
      EXPECT_EQ(fact(client, "stats", "sync_partial_ok"), "2");
      client.call({"SELECT", "1"});
      client.call({"SET", "round", std::to_string(round)});
      await_replicas(client, "2");
      for (Node* replica : {&ours, &theirs}) {
        WireClient there = replica->connect();
        EXPECT_EQ(there.call({"DBSIZE"}), ":500\r\n");
        there.call({"SELECT", "1"});
        EXPECT_EQ(there.call({"GET", "round"}), "$1\r\n" + std::to_string(round) + "\r\n");
      }
    }
  }
}

TEST(PlannedStop, of_a_replica_costs_no_snapshot) {
  for (const char* keeps_log : {"no", "yes"}) {
    SCOPED_TRACE(keeps_log);
    Node primary(Kind::redis);
    Node replica(Kind::weir, joined(primary.as_primary(), {"--appendonly", keeps_log}));
    WireClient client = primary.connect();
    client.call({"SET", "a", "1"});
    await_replicas(client);
    replica.signal(SIGTERM);
    EXPECT_EQ(replica.exit_code(), 0);
    client.call({"SET", "b", "2"});
    replica.start();
    await_replicas(client);
    EXPECT_EQ(replica.connect().call({"DBSIZE"}), ":2\r\n");
    EXPECT_EQ(fact(client, "stats", "sync_full"), "1");
  }
}

// Its replicas have writes that it no longer knows, and must not keep them.
TEST(UnplannedStop, of_a_primary_costs_its_replicas_a_snapshot) {
  for (const char* keeps_log : {"no", "yes"}) {
    SCOPED_TRACE(keeps_log);
    Node primary(Kind::weir, {"--appendonly", keeps_log, "--appendfsync", "no"});
    Node replica(Kind::weir, primary.as_primary());
    {
      WireClient client = primary.connect();
      client.call({"SET", "a", "1"});
      await_replicas(client);
      client.call({"SAVE"});
      client.call({"SET", "b", "2"});
      await_replicas(client);
    }
    primary.kill();
    primary.start();
    WireClient client = primary.connect();
    await_replicas(client);
    EXPECT_EQ(fact(client, "stats", "sync_full"), "1");
    EXPECT_EQ(replica.connect().call({"DBSIZE"}), client.call({"DBSIZE"}));
  }
}

struct Places {
  Kind before, after;
};

class PlannedFailover : public ::testing::TestWithParam<Places> {};

TEST_P(PlannedFailover, loses_no_write_and_costs_no_snapshot) {
  Node before(GetParam().before);
  Node after(GetParam().after, before.as_primary());
  Node third(Kind::weir, before.as_primary());
  WireClient writer = before.connect();
  writer.call({"SET", "other", "1"});
  await_replicas(writer, "2");
  WireClient admin = before.connect();
  EXPECT_EQ(admin.call({"FAILOVER", "TO", "127.0.0.1", after.port()}), "+OK\r\n");
  std::int64_t counted = 0;
  for (std::string reply; (reply = writer.call({"INCR", "counter"})).starts_with(':'); ++counted) {
  }
  await_fact(after, "replication", "role", "master");
  await_fact(before, "replication", "master_link_status", "up");
  EXPECT_EQ(fact(admin, "replication", "role"), "slave");
  EXPECT_EQ(fact(admin, "replication", "master_failover_state"), "no-failover");
  WireClient client = after.connect();
  EXPECT_EQ(client.call({"INCRBY", "counter", "0"}), ':' + std::to_string(counted) + "\r\n");
  EXPECT_EQ(fact(client, "stats", "sync_full"), "0");
  client.call({"SET", "late", "1"});
  await_replicas(client);
  await_size(third, "3");                             // it follows the old primary on
  EXPECT_EQ(fact(admin, "stats", "sync_full"), "2");  // those at the beginning
}

INSTANTIATE_TEST_SUITE_P(Of, PlannedFailover,
                         ::testing::Values(Places{Kind::weir, Kind::weir}, Places{Kind::weir, Kind::redis},
                                           Places{Kind::redis, Kind::weir}),
                         [](const auto& instance) {
                           const auto name = [](Kind kind) { return kind == Kind::weir ? "weir" : "redis"; };
                           return std::string(name(instance.param.before)) + "_to_" +
                                  name(instance.param.after);
                         });

TEST(RepeatedFailover, goes_there_and_back) {
  Node one(Kind::weir);
  Node two(Kind::weir, one.as_primary());
  Node* primary = &one;
  Node* replica = &two;
  for (int i = 0; i < 4; ++i) {
    WireClient client = primary->connect();
    client.call({"INCR", "n"});
    await_replicas(client);
    EXPECT_EQ(client.call({"FAILOVER"}), "+OK\r\n");
    await_fact(*replica, "replication", "role", "master");
    await_fact(*primary, "replication", "master_link_status", "up");
    std::swap(primary, replica);
  }
  EXPECT_EQ(primary->connect().call({"GET", "n"}), "$1\r\n4\r\n");
}

}  // namespace
}  // namespace weir::kv::testing
