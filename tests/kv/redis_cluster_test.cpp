// A gateway in front of six redis-servers, under load over TCP and RDMA, while slots move, a node is killed
// and another fails over: every acknowledged write is found, and no reply belongs to another request.
#include "tests/kv/redis_cluster.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>

#include "cluster/key_slot.hpp"
#include "tests/kv/own_network.hpp"
#include "tests/kv/rdma_client.hpp"

namespace weir::kv::testing {
namespace {

using Speak = std::function<std::vector<std::string>(const std::string& requests, std::size_t count)>;

std::string text_of(const std::string& reply) {
  const std::size_t begin = reply.find('\n') + 1;
  return begin == reply.size() ? reply : reply.substr(begin, reply.size() - begin - 2);
}

// One client's keys, which no other client writes, and what it knows of them.
class Ledger {
 public:
  static constexpr int tags = 24;
  static constexpr int keys = tags * 4;

  explicit Ledger(std::string name) : name_(std::move(name)) {}

  static std::string tag(int key) { return "{t" + std::to_string(key % tags) + "}"; }
  std::string key(int number) const { return tag(number) + name_ + ':' + std::to_string(number); }

  // Sixteen steps, and the correct replies.
  void round(const Speak& speak) {
    constexpr std::size_t at_once = 16;
    std::string requests;
    std::vector<std::function<bool(const std::string&)>> checks;
    for (std::size_t i = 0; i < at_once; ++i) {
      const int number = static_cast<int>(step_ % keys);
      const std::string value = key(number) + '=' + std::to_string(++step_);
      switch (step_ % 4) {
        case 0:
          requests += encode({"SET", key(number), value});
          checks.push_back(
              [this, number, value](const std::string& reply) { return was_set(number, value, reply); });
          break;
        case 1:
          requests += encode({"GET", key(number)});
          checks.push_back([this, number](const std::string& reply) { return may_be(number, reply); });
          break;
        case 2:
          requests += encode({"MULTI"}) + encode({"GET", key(number)}) + encode({"EXEC"});
          checks.emplace_back([](const std::string& reply) { return reply == "+OK\r\n"; });
          checks.emplace_back([](const std::string& reply) { return reply == "+QUEUED\r\n"; });
          checks.push_back([this, number](const std::string& reply) {
            return reply.starts_with("*1\r\n") && may_be(number, reply.substr(4));
          });
          break;
        default:
          requests += encode({"EVAL", "return ARGV[1]", "1", key(number), value});
          checks.push_back([value](const std::string& reply) { return text_of(reply) == value; });
      }
    }
    const std::vector<std::string> replies = speak(requests, checks.size());
    for (std::size_t i = 0; i < checks.size(); ++i) take(replies[i], checks[i]);
  }
  void expect_found(const Speak& speak) {
    for (int number = 0; number < keys; ++number) {
      const std::string reply = speak(encode({"GET", key(number)}), 1).front();
      EXPECT_TRUE(may_be(number, reply))
          << key(number) << ": " << reply << " instead of " << acknowledged_[number];
    }
  }
  std::uint64_t served() const { return served_; }
  std::uint64_t unknown() const { return unknown_; }
  const std::string& wrong() const { return wrong_; }

 private:
  void take(const std::string& reply, const std::function<bool(const std::string&)>& check) {
    const bool down = reply.starts_with("-NODEDOWN") || reply.starts_with("-CLUSTERDOWN");
    if (!check(reply) && !down && wrong_.empty()) wrong_ = name_ + " got " + reply;
    ++(down ? unknown_ : served_);
  }
  bool was_set(int number, const std::string& value, const std::string& reply) {
    if (reply.starts_with("-NODEDOWN")) maybe_[number].insert(value);
    if (reply == "+OK\r\n") acknowledged_[number] = value;
    return reply == "+OK\r\n";
  }
  bool may_be(int number, const std::string& reply) {
    if (reply == "$-1\r\n") return acknowledged_[number].empty();
    return text_of(reply) == acknowledged_[number] || maybe_[number].contains(text_of(reply));
  }

  const std::string name_;
  std::uint64_t step_ = 0;
  std::map<int, std::string> acknowledged_;
  std::map<int, std::set<std::string>> maybe_;
  std::atomic<std::uint64_t> served_ = 0, unknown_ = 0;
  std::string wrong_;
};

Speak by_unix_socket(RunningServer& server) {
  const auto client = std::make_shared<WireClient>(server.connect());
  return [client](const std::string& requests, std::size_t count) {
    client->send(requests);
    std::vector<std::string> replies;
    while (replies.size() < count) replies.push_back(client->reply());
    return replies;
  };
}

Speak by_tcp(RunningServer& server) {
  const auto client = std::make_shared<WireClient>(WireClient::tcp(port_of(server, "tcp")));
  return [client](const std::string& requests, std::size_t count) {
    client->send(requests);
    std::vector<std::string> replies;
    while (replies.size() < count) replies.push_back(client->reply());
    return replies;
  };
}

Speak by_rdma(RunningServer& server) {
  const auto client = std::make_shared<RdmaClient>(port_of(server, "rdma"));
  return
      [client](const std::string& requests, std::size_t count) { return client->replies(requests, count); };
}

// Clients that run until they are told to stop, and can be suspended.
class Load {
 public:
  explicit Load(std::vector<Speak> ways) : ways_(std::move(ways)) {
    for (std::size_t i = 0; i < ways_.size(); ++i)
      ledgers_.push_back(std::make_unique<Ledger>("c" + std::to_string(i)));
    for (std::size_t i = 0; i < ways_.size(); ++i) threads_.emplace_back([this, i] { run(i); });
  }
  ~Load() {
    if (!threads_.empty()) stop();
  }

  void await_served(std::uint64_t more) {
    for (const auto& ledger : ledgers_) {
      const std::uint64_t goal = ledger->served() + more;
      await_true("clients are served", [&] { return ledger->served() >= goal || failed_; });
    }
  }
  template <class Work>
  void meanwhile_still(Work work) {
    const std::lock_guard lock(rest_);
    while (resting_ < ways_.size()) std::this_thread::yield();
    work();
  }
  void stop() {
    stopped_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void expect_right() {
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      EXPECT_EQ(ledgers_[i]->wrong(), "");
      ledgers_[i]->expect_found(ways_[i]);
      std::printf("client %zu: %llu served, %llu of unknown outcome\n", i,
                  static_cast<unsigned long long>(ledgers_[i]->served()),
                  static_cast<unsigned long long>(ledgers_[i]->unknown()));
    }
    EXPECT_FALSE(failed_);
  }

 private:
  void run(std::size_t i) {
    try {
      while (!stopped_) {
        ledgers_[i]->round(ways_[i]);
        ++resting_;
        {
          const std::lock_guard lock(rest_);
        }
        --resting_;
      }
    } catch (const std::exception& problem) {
      std::printf("client %zu: %s\n", i, problem.what());
      failed_ = true;
      ++resting_;
    }
  }

  std::vector<Speak> ways_;
  std::vector<std::unique_ptr<Ledger>> ledgers_;
  std::mutex rest_;
  std::atomic<std::size_t> resting_ = 0;
  std::atomic<bool> stopped_ = false, failed_ = false;
  std::vector<std::thread> threads_;
};

TEST(RedisCluster, is_served_through_a_gateway_while_slots_move_and_nodes_fail_over) {
  if (!enter_own_network())
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  RedisCluster cluster;
  Settings settings = rdma_settings();
  settings.cluster_gateway = "127.0.0.1:" + std::to_string(RedisCluster::port(4));
  RunningServer gateway(std::move(settings));
  Load load({by_tcp(gateway), by_unix_socket(gateway), by_rdma(gateway), by_rdma(gateway)});
  load.await_served(500);
  for (int tag = 0; tag < 6; ++tag) {
    const int slot = weir::cluster::key_slot(Ledger::tag(tag));
    const std::size_t from = RedisCluster::first_owner(slot);
    cluster.move_slot(slot, from, (from + 1) % RedisCluster::primaries);
  }
  load.await_served(500);
  // What Redis has acknowledged but its replica lacks is lost with it, so nothing may be in flight then.
  load.meanwhile_still([&] {
    cluster.await_replica(0);
    cluster.kill(0);
  });
  cluster.fail_over(3, false);
  load.await_served(500);
  cluster.fail_over(4, true);
  load.await_served(500);
  load.stop();
  load.expect_right();
  const cluster::GatewayFacts facts = gateway.run([](Server& s) { return s.gateway->facts(); });
  EXPECT_GT(facts.moved, 0u);
  std::printf("%llu passed on, %llu moved, %llu asked, %llu links broken\n",
              static_cast<unsigned long long>(facts.passed_on), static_cast<unsigned long long>(facts.moved),
              static_cast<unsigned long long>(facts.asked),
              static_cast<unsigned long long>(facts.broken_links));
}

}  // namespace
}  // namespace weir::kv::testing
