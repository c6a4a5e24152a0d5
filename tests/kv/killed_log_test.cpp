// The server is killed at random moments while clients write and the log is rewritten. After a restart all
// acknowledged writes are there, and transactions are whole or absent.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "tests/kv/program.hpp"
#include "tests/kv/wire_client.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::kv::testing {
namespace {

using Clock = std::chrono::steady_clock;

Program started_in(const test::ScratchDirectory& folder, const std::string& sync) {
  Program server({"--port", "0", "--unixsocket", folder.file("s"), "--dir", folder.path(), "--appendonly",
                  "yes", "--appendfsync", sync, "--auto-aof-rewrite-percentage", "0"});
  EXPECT_TRUE(server.prints("Ready to accept connections"));
  return server;
}

// One client that increments two keys, in one transaction each time, until the server is gone.
class Writer {
 public:
  explicit Writer(int number) : keys_{"a" + std::to_string(number), "b" + std::to_string(number)} {}

  void run(const std::string& path, std::atomic<std::uint64_t>& acknowledged_by_all) {
    history_.clear();
    try {
      WireClient client = WireClient::unix_socket(path);
      for (;;) {
        const std::string value = std::to_string(acknowledged_ + 1);
        client.send(encode({"MULTI"}) + encode({"SET", keys_[0], value}) + encode({"SET", keys_[1], value}) +
                    encode({"EXEC"}));
        for (int i = 0; i < 4; ++i) client.reply();
        history_.emplace_back(Clock::now(), ++acknowledged_);
        ++acknowledged_by_all;
      }
    } catch (const std::runtime_error&) {  // the server is gone
    }
  }

  // The value that must survive if writes acknowledged after `moment` may be lost.
  std::int64_t at_least(Clock::time_point moment) const {
    std::int64_t last = history_.empty() ? acknowledged_ : history_.front().second - 1;
    for (const auto& [when, value] : history_) {
      if (when <= moment) last = value;
    }
    return last;
  }
  std::int64_t at_most() const { return acknowledged_ + 1; }

  // The value that survived, from which it continues; -1: half a transaction.
  std::int64_t look(WireClient& client) {
    const std::vector<std::string> values = elements(client.call({"MGET", keys_[0], keys_[1]}));
    if (values[1] != values[2]) return -1;
    const std::string& value = values[1];
    return acknowledged_ = value == "$-1\r\n" ? 0 : std::stoll(value.substr(value.find("\r\n") + 2));
  }

 private:
  std::string keys_[2];
  std::int64_t acknowledged_ = 0;  // the last acknowledged value
  std::vector<std::pair<Clock::time_point, std::int64_t>> history_;
};

struct Plan {
  const char* sync;
  std::chrono::milliseconds may_be_lost;
  std::uint64_t most_acknowledged;  // before the server is killed
};
constexpr Plan always{"always", std::chrono::milliseconds(0), 300};
// A sync each second, and no write is delayed for longer than two; beyond that the server has to sync first.
constexpr Plan everysec{"everysec", std::chrono::milliseconds(3000), 5000};

void kill_again_and_again(const Plan& plan, std::uint64_t seed, int rounds) {
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  const test::ScratchDirectory folder;
  std::mt19937_64 random(seed);
  std::vector<Writer> writers;
  for (int i = 0; i < 4; ++i) writers.emplace_back(i);
  for (int round = 0; round < rounds; ++round) {
    Clock::time_point moment;
    {
      Program server = started_in(folder, plan.sync);
      std::atomic<std::uint64_t> acknowledged = 0;
      std::vector<std::thread> threads;
      for (Writer& writer : writers)
        threads.emplace_back([&] { writer.run(folder.file("s"), acknowledged); });
      if (random() % 2 == 0) WireClient::unix_socket(folder.file("s")).call({"BGREWRITEAOF"});
      const std::uint64_t enough = random() % plan.most_acknowledged;
      while (acknowledged < enough) std::this_thread::yield();
      moment = Clock::now();
      server.signal(SIGKILL);
      for (std::thread& thread : threads) thread.join();
    }
    Program server = started_in(folder, plan.sync);
    WireClient client = WireClient::unix_socket(folder.file("s"));
    for (Writer& writer : writers) {
      const std::int64_t least = writer.at_least(plan.may_be_lost.count() == 0 ? Clock::time_point::max()
                                                                               : moment - plan.may_be_lost);
      const std::int64_t most = writer.at_most();
      const std::int64_t kept = writer.look(client);
      ASSERT_GE(kept, least) << "round " << round << ", seed " << seed;
      ASSERT_LE(kept, most) << "round " << round << ", seed " << seed;
    }
    server.signal(SIGKILL);
  }
}

TEST(KilledLog, with_always_has_all_that_was_acknowledged) { kill_again_and_again(always, 1, 5); }
TEST(KilledLog, with_everysec_has_all_but_the_last_seconds) { kill_again_and_again(everysec, 2, 5); }

TEST(KilledLog, slow_with_always_has_all_that_was_acknowledged_hundreds_of_times) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) kill_again_and_again(always, seed, 25);
}
TEST(KilledLog, slow_with_everysec_has_all_but_the_last_seconds_hundreds_of_times) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) kill_again_and_again(everysec, seed, 25);
}

}  // namespace
}  // namespace weir::kv::testing
