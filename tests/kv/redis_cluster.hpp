// A cluster of six of Debian's redis-servers on loopback: three primaries, each with a replica.
//
// It runs in its own network namespace, because nodes know each other by port, and also use the port number
// plus 10000. However slow the machine is, no node takes over by itself: fail_over() and move_slot() decide.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <sstream>

#include "tests/kv/redis_server.hpp"

namespace weir::kv::testing {

inline void await_true(const std::string& what, const std::function<bool()>& reached) {
  for (int i = 0; i < 3000; ++i) {
    if (reached()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("does not come to it: " + what);
}

class RedisCluster {
 public:
  static constexpr std::size_t primaries = 3;
  static constexpr std::size_t size = 2 * primaries;

  RedisCluster() : RedisCluster("--port", {}) {}
  // Nodes that speak only TLS, to clients and among themselves; `more` names the files.
  static RedisCluster with_tls(std::vector<std::string> more) {
    more.insert(more.end(), {"--port", "0", "--tls-cluster", "yes", "--tls-replication", "yes"});
    return RedisCluster("--tls-port", more);
  }

  RedisCluster(const std::string& port_option, const std::vector<std::string>& more) {
    for (std::size_t i = 0; i < size; ++i) {
      std::vector<std::string> words = options();
      words.insert(words.end(), more.begin(), more.end());
      words.insert(words.end(), {port_option, std::to_string(port(i))});
      nodes_.push_back(std::make_unique<RedisServer>(words));
    }
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < i; ++j) call(i, {"CLUSTER", "MEET", "127.0.0.1", std::to_string(port(j))});
    }
    for (std::size_t i = 0; i < size; ++i) await_true("all know each other", [&] { return knows_all(i); });
    for (std::size_t i = 0; i < primaries; ++i) {
      call(i, {"CLUSTER", "ADDSLOTSRANGE", std::to_string(first_slot(i)),
               std::to_string(first_slot(i + 1) - 1)});
      await_true("it becomes a replica",
                 [&] { return call(primaries + i, {"CLUSTER", "REPLICATE", id(i)}) == "+OK\r\n"; });
    }
    for (std::size_t i = 0; i < size; ++i) {
      await_true("the cluster is well",
                 [&] { return call(i, {"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos; });
    }
    for (std::size_t i = 0; i < primaries; ++i) await_replica(i);
  }

  static std::uint16_t port(std::size_t node) { return static_cast<std::uint16_t>(7001 + node); }
  static int first_slot(std::size_t node) { return static_cast<int>(16384 * node / primaries); }
  static std::size_t first_owner(int slot) {
    std::size_t node = 0;
    while (slot >= first_slot(node + 1)) ++node;
    return node;
  }

  std::string call(std::size_t node, const std::vector<std::string>& words) const {
    return nodes_[node]->connect().call(words);
  }
  // Waits until the replica of a primary has all of its data.
  void await_replica(std::size_t node) const {
    await_true("its replica follows", [&] { return call(node, {"WAIT", "1", "100"}) == ":1\r\n"; });
  }
  void kill(std::size_t node) { nodes_[node]->kill(); }
  // Stops the process, with its connections open, until resume().
  void halt(std::size_t node) { nodes_[node]->signal(SIGSTOP); }
  void resume(std::size_t node) { nodes_[node]->signal(SIGCONT); }
  // Makes a replica take over. With `asking`, its primary must be alive, so that nothing is lost.
  void fail_over(std::size_t replica, bool asking) {
    call(replica, asking ? std::vector<std::string>{"CLUSTER", "FAILOVER"}
                         : std::vector<std::string>{"CLUSTER", "FAILOVER", "TAKEOVER"});
    await_true("it has taken over",
               [&] { return call(replica, {"ROLE"}).find("master") != std::string::npos; });
  }
  // Moves a slot as redis-cli --cluster reshard does.
  void move_slot(int slot, std::size_t from, std::size_t to) {
    const std::string name = std::to_string(slot);
    expect_ok(to, {"CLUSTER", "SETSLOT", name, "IMPORTING", id(from)});
    expect_ok(from, {"CLUSTER", "SETSLOT", name, "MIGRATING", id(to)});
    while (true) {
      const auto keys = elements(call(from, {"CLUSTER", "GETKEYSINSLOT", name, "5"}));
      if (keys.size() == 1) break;
      std::vector<std::string> words{"MIGRATE", "127.0.0.1", std::to_string(port(to)), "", "0",
                                     "5000",    "KEYS"};
      for (std::size_t i = 1; i < keys.size(); ++i) {
        const std::size_t begin = keys[i].find('\n') + 1;
        words.push_back(keys[i].substr(begin, keys[i].size() - begin - 2));
      }
      call(from, words);
    }
    expect_ok(to, {"CLUSTER", "SETSLOT", name, "NODE", id(to)});
    expect_ok(from, {"CLUSTER", "SETSLOT", name, "NODE", id(to)});
  }

 private:
  static std::vector<std::string> options() {
    return {"--bind",
            "127.0.0.1",
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "60000",
            "--cluster-replica-no-failover",
            "yes",
            "--repl-diskless-sync-delay",
            "0"};
  }
  void expect_ok(std::size_t node, const std::vector<std::string>& words) const {
    if (const std::string reply = call(node, words); reply != "+OK\r\n")
      throw std::runtime_error(words[1] + ' ' + words[3] + ": " + reply);
  }
  std::string id(std::size_t node) const {
    const std::string reply = call(node, {"CLUSTER", "MYID"});
    return reply.substr(reply.find('\n') + 1, 40);
  }
  bool knows_all(std::size_t node) const {
    const std::string nodes = call(node, {"CLUSTER", "NODES"});
    return nodes.find("handshake") == std::string::npos && std::ranges::count(nodes, '\n') == 2 + size;
  }

  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace weir::kv::testing
