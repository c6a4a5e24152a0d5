// Memory that evicting cannot free: while a snapshot waits for the disk or for a replica, a full cache loses
// as many keys as are written to it, and not more; and writes are refused only for what counts.
#include "kv/core/uncounted_memory.hpp"

#include <gtest/gtest.h>

#include "kv/core/history.hpp"
#include "kv/persistence/snapshots.hpp"
#include "kv/text/heap.hpp"
#include "tests/kv/replication_facts.hpp"
#include "tests/kv/running_server.hpp"
#include "tests/kv/stuck_disk.hpp"

namespace weir::kv::testing {
namespace {

constexpr std::size_t value_size = 2000;
constexpr int at_first = 10'000;
constexpr const char* ok = "+OK\r\n";

class StuckServer {
 public:
  StuckServer() : server_(settings(folder_.path()), disk_.disk()), client_(server_.connect()) {}
  ~StuckServer() { disk_.release(); }  // the server's end waits for it

  RunningServer& server() { return server_; }
  WireClient& client() { return client_; }
  StuckDisk& disk() { return disk_; }

  // Room for `bytes` more than are used now.
  void limit(std::size_t bytes, const char* policy) {
    const std::size_t used = server_.run([](Server&) { return used_memory(); });
    ASSERT_EQ(client_.call(
                  {"CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", std::to_string(used + bytes)}),
              ok);
  }
  // Returns how many were refused.
  int write(int count, const std::string& prefix) {
    const std::string value(value_size, 'x');
    int refused = 0;
    for (int done = 0; done < count;) {
      std::string batch;
      const int some = std::min(count - done, 100);
      for (int i = 0; i < some; ++i) batch += encode({"SET", prefix + std::to_string(done + i), value});
      client_.send(batch);
      for (int i = 0; i < some; ++i) refused += client_.reply() == ok ? 0 : 1;
      done += some;
    }
    return refused;
  }
  std::size_t keys() {
    return server_.run([](Server& s) { return s.databases[0]->size(); });
  }
  std::uint64_t evicted() {
    return server_.run([](Server& s) { return s.stats.evicted; });
  }

 private:
  static Settings settings(const std::string& folder) {
    Settings settings = quiet_settings();
    settings.dir = folder;
    settings.rdbcompression = false;
    settings.repl_backlog_size = 64'000;
    return settings;
  }

  const ScratchFolder folder_;
  StuckDisk disk_;
  RunningServer server_;
  WireClient client_;
};

// What takes memory that evicting cannot free.
struct Taker {
  const char* name;
  WireClient (*begin)(StuckServer& stuck);
};

WireClient begin_on_disk(StuckServer& stuck, const char* command) {
  WireClient other = stuck.server().connect();
  other.call({command});
  stuck.disk().await_write();
  return other;
}

// Keeps nothing of it: this process's memory is the server's.
void drop_through(WireClient& client, const std::string& mark) {
  std::string tail;
  char piece[16'000];
  while (!tail.ends_with(mark)) {
    const ssize_t size = ::recv(client.fd(), piece, sizeof piece, 0);
    ASSERT_GT(size, 0);
    tail.append(piece, static_cast<std::size_t>(size));
    tail.erase(0, tail.size() - std::min(tail.size(), mark.size()));
  }
}

const Taker takers[] = {
    {"snapshot", [](StuckServer& stuck) { return begin_on_disk(stuck, "BGSAVE"); }},
    {"log_rewrite", [](StuckServer& stuck) { return begin_on_disk(stuck, "BGREWRITEAOF"); }},
    {"replica_that_reads_nothing",
     [](StuckServer& stuck) {
       WireClient replica = stuck.server().connect();
       replica.send(encode({"REPLCONF", "capa", "eof"}) + encode({"PSYNC", "?", "-1"}));
       replica.through("$EOF:");
       return replica;
     }},
    {"replica_that_loads",
     [](StuckServer& stuck) {
       WireClient replica = stuck.server().connect();
       replica.send(encode({"REPLCONF", "capa", "eof"}) + encode({"PSYNC", "?", "-1"}));
       replica.through("$EOF:");
       drop_through(replica, replica.exactly(repl::History::id_size));
       return replica;
     }},
};

class FullCache : public ::testing::TestWithParam<Taker> {};

TEST_P(FullCache, loses_as_many_keys_as_are_written) {
  StuckServer stuck;
  stuck.limit(20'000'000, "allkeys-lru");
  ASSERT_EQ(stuck.write(at_first, "k"), 0);
  const std::size_t keys = stuck.keys();
  const std::uint64_t evicted = stuck.evicted();
  ASSERT_GT(evicted, 0u);
  const WireClient taker = GetParam().begin(stuck);
  constexpr int written = 2000;
  EXPECT_EQ(stuck.write(written, "n"), 0);
  EXPECT_GT(stuck.keys(), keys - keys / 20);
  EXPECT_LT(stuck.evicted() - evicted, written + keys / 20);
}

TEST_P(FullCache, is_changed_without_refusal) {
  StuckServer stuck;
  ASSERT_EQ(stuck.write(at_first, "k"), 0);
  stuck.limit(1'000'000, "noeviction");
  const WireClient taker = GetParam().begin(stuck);
  EXPECT_EQ(stuck.write(at_first, "k"), 0);
  EXPECT_GT(stuck.write(at_first, "n"), 0) << "the limit is in force";
}

TEST_P(FullCache, reports_what_does_not_count) {
  StuckServer stuck;
  ASSERT_EQ(stuck.write(at_first, "k"), 0);
  EXPECT_EQ(fact(stuck.client(), "memory", "mem_not_counted_for_evict"), "0");
  const WireClient taker = GetParam().begin(stuck);
  ASSERT_EQ(stuck.write(1000, "k"), 0);
  EXPECT_GT(std::stoll(fact(stuck.client(), "memory", "mem_not_counted_for_evict")), 1'000'000);
}
INSTANTIATE_TEST_SUITE_P(While, FullCache, ::testing::ValuesIn(takers),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(UncountedMemory, is_free_again_when_the_disk_has_it) {
  StuckServer stuck;
  ASSERT_EQ(stuck.write(at_first, "k"), 0);
  begin_on_disk(stuck, "BGSAVE");
  stuck.disk().release();
  while (stuck.server().run([](Server& s) { return s.snapshots->running(); })) std::this_thread::yield();
  EXPECT_EQ(stuck.server().run([](Server& s) { return s.uncounted_memory().all(); }), 0u);
}

// What FLUSHDB leaves to the snapshot stays until the snapshot has it.
TEST(UncountedMemory, contains_emptied_databases_that_a_snapshot_needs) {
  StuckServer stuck;
  stuck.limit(23'000'000, "allkeys-lru");
  ASSERT_EQ(stuck.write(at_first, "k"), 0);
  begin_on_disk(stuck, "BGSAVE");
  const std::uint64_t evicted = stuck.evicted();
  ASSERT_EQ(stuck.client().call({"FLUSHDB"}), ok);
  ASSERT_EQ(stuck.write(5000, "n"), 0);
  EXPECT_EQ(stuck.keys(), 5000u);
  EXPECT_EQ(stuck.evicted(), evicted);
}

// Its queue is not of maxmemory, so it has a limit of its own.
TEST(StuckReplica, is_closed_when_changed_data_exceeds_its_limit) {
  StuckServer stuck;
  ASSERT_EQ(stuck.write(at_first, "k"), 0);
  stuck.client().call({"CONFIG", "SET", "client-output-buffer-limit", "replica 10mb 0 0"});
  WireClient replica = stuck.server().connect();
  replica.send(encode({"REPLCONF", "capa", "eof"}) + encode({"PSYNC", "?", "-1"}));
  replica.through("$EOF:");
  ASSERT_EQ(fact(stuck.client(), "replication", "connected_slaves"), "1");
  for (int i = 0; i < at_first; ++i) stuck.client().call({"APPEND", "k" + std::to_string(i), "x"});
  EXPECT_EQ(fact(stuck.client(), "replication", "connected_slaves"), "0");
}

// As in Redis: replicas that come back find it, so it is a use of memory like any other.
TEST(UncountedMemory, excludes_the_backlog) {
  repl::History history("id");
  history.keep();
  history.append(std::string(10 * repl::History::block_size, 'x'));
  const auto all = static_cast<std::int64_t>(10 * repl::History::block_size);
  EXPECT_GE(history.memory(), static_cast<std::size_t>(all));
  EXPECT_EQ(history.memory_beyond(all), 0u);
  EXPECT_EQ(history.memory_beyond(0), history.memory() / 10 * 8);
}

}  // namespace
}  // namespace weir::kv::testing
