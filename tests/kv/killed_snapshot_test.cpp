// The server is killed at random moments while it takes snapshots under load. The disk always has one whole
// snapshot of one moment, and it is not older than the last one that was reported complete.
//
// Each write is one MSET of all keys to the same number, so a snapshot of one moment has only one number.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tests/kv/program.hpp"
#include "tests/kv/wire_client.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::kv::testing {
namespace {

constexpr int keys = 3000;

Program started_in(const test::ScratchDirectory& folder) {
  Program server({"--port", "0", "--unixsocket", folder.file("s"), "--dir", folder.path(), "--save", ""});
  EXPECT_TRUE(server.prints("Ready to accept connections"));
  return server;
}

std::string set_all(std::uint64_t number) {
  std::vector<std::string> words{"MSET"};
  for (int i = 0; i < keys; ++i) {
    words.push_back("key:" + std::to_string(i));
    words.push_back(std::to_string(number) + std::string(100, 'x'));
  }
  return encode(words);
}

// The number that all keys hold; -1: they differ.
std::int64_t number_of_all(WireClient& client) {
  std::vector<std::string> words{"MGET"};
  for (int i = 0; i < keys; ++i) words.push_back("key:" + std::to_string(i));
  const std::vector<std::string> values = elements(client.call(words));
  for (const std::string& value : values) {
    if (&value != &values[0] && value != values[1]) return -1;
  }
  if (values[1] == "$-1\r\n") return 0;
  return std::stoll(values[1].substr(values[1].find("\r\n") + 2));
}

void kill_and_look(std::uint64_t seed, int rounds) {
  ::testing::Test::RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  const test::ScratchDirectory folder;
  std::uint64_t number = 0;
  for (int round = 0; round < rounds; ++round) {
    std::uint64_t complete = 0;  // the least that a complete snapshot must hold
    {
      Program server = started_in(folder);
      WireClient client = WireClient::unix_socket(folder.file("s"));
      const std::int64_t found = number_of_all(client);
      ASSERT_GE(found, 0) << "round " << round << ", seed " << seed;
      complete = static_cast<std::uint64_t>(found);
      std::uint64_t asked_at = 0;
      for (std::uint64_t left = random() % 40; left > 0; --left) {
        client.send(set_all(++number));
        ASSERT_EQ(client.reply(), "+OK\r\n");
        const bool runs =
            client.call({"INFO", "persistence"}).find("rdb_bgsave_in_progress:1") != std::string::npos;
        if (runs) continue;
        complete = std::max(complete, asked_at);
        asked_at = number;
        ASSERT_EQ(client.call({"BGSAVE"}), "+Background saving started\r\n");
      }
      // Also in the middle of another one.
      if (random() % 2 == 0) client.send(set_all(++number));
      server.signal(SIGKILL);
    }
    Program server = started_in(folder);
    WireClient client = WireClient::unix_socket(folder.file("s"));
    const std::int64_t found = number_of_all(client);
    ASSERT_GE(found, static_cast<std::int64_t>(complete)) << "round " << round << ", seed " << seed;
    ASSERT_LE(found, static_cast<std::int64_t>(number));
    server.signal(SIGKILL);
  }
}

TEST(KilledSnapshot, is_whole_or_the_one_before) { kill_and_look(1, 6); }

TEST(KilledSnapshot, slow_is_whole_or_the_one_before_hundreds_of_times) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) kill_and_look(seed, 15);
}

}  // namespace
}  // namespace weir::kv::testing
