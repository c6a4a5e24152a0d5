// Random HyperLogLogs, texts and places, compared with redis-server: the stored bytes must be equal, a search
// must find the same members in the same order, and texts must have the same parts in common.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/kv/redis_server.hpp"
#include "tests/kv/running_server.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {
namespace {

// Sends one request to both servers.
class BothServers {
 public:
  // Both servers' reply; fails the test if they differ.
  std::string ask(const std::vector<std::string>& words) {
    const std::string ours = ours_client_.call(words);
    const std::string theirs = theirs_client_.call(words);
    std::string line;
    for (const std::string& word : words) line += word + ' ';
    EXPECT_EQ(ours, theirs) << line;
    return ours;
  }

 private:
  RunningServer ours_;
  RedisServer theirs_;
  WireClient ours_client_ = WireClient::unix_socket(ours_.path());
  WireClient theirs_client_ = WireClient::unix_socket(theirs_.path());
};

TEST(RandomHyperLogLogs, are_the_same_bytes_as_in_redis) {
  std::mt19937 random(7);
  BothServers servers;
  const auto key = [&] { return "h" + std::to_string(random() % 3); };
  for (int step = 0; step < 3000 && !HasFailure(); ++step) {
    std::vector<std::string> words{"PFADD", key()};
    const bool merges = random() % 64 == 0;
    if (merges) words = {"PFMERGE", key(), key(), key()};
    for (auto left = merges ? 0 : random() % 12; left > 0; --left)
      words.push_back(std::to_string(random() % 50'000));
    servers.ask(words);
    servers.ask({"GET", words[1]});
    if (random() % 16 == 0) servers.ask({"PFCOUNT", words[1]});
    if (random() % 64 == 0) servers.ask({"PFCOUNT", "h0", "h1", "h2"});
    // The sparse encodings are the complicated ones.
    if (random() % 256 == 0) servers.ask({"DEL", key()});
  }
}

// Of few letters, so that there are many equally long ways; of lengths around those of machine words.
TEST(RandomTexts, have_the_subsequence_in_common_that_redis_finds) {
  constexpr unsigned seed = 9;
  std::mt19937 random(seed);
  BothServers servers;
  for (int step = 0; step < 500 && !HasFailure(); ++step) {
    const auto text = [&] {
      std::string made(random() % 3 == 0 ? 62 + random() % 4 : random() % 200, ' ');
      for (char& letter : made) letter = static_cast<char>('a' + random() % 3);
      return made;
    };
    servers.ask({"MSET", "a", text(), "b", text()});
    servers.ask({"LCS", "a", "b"});
    servers.ask({"LCS", "a", "b", "LEN"});
    servers.ask({"LCS", "a", "b", "IDX", "WITHMATCHLEN"});
  }
}

TEST(RandomPlaces, are_found_as_in_redis) {
  std::mt19937 random(8);
  std::uniform_real_distribution<double> even(-1, 1);
  BothServers servers;
  const auto number = [](double value) { return std::to_string(value); };
  const auto longitude = [&] { return number(even(random) * 180); };
  const auto latitude = [&] { return number(even(random) * 85); };
  for (int i = 0; i < 400; ++i) servers.ask({"GEOADD", "g", longitude(), latitude(), std::to_string(i)});
  // Half of them are close together.
  for (int i = 400; i < 800; ++i) {
    servers.ask({"GEOADD", "g", number(13 + even(random)), number(52 + even(random)), std::to_string(i)});
  }
  const auto metres = [&] { return number(std::exp((even(random) + 1) * 8.7)); };
  for (int step = 0; step < 2000 && !HasFailure(); ++step) {
    std::vector<std::string> words{"GEOSEARCH", "g"};
    const auto add = [&](std::vector<std::string> more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    if (random() % 2 == 0) {
      add({"FROMMEMBER", std::to_string(random() % 800)});
    } else {
      add({"FROMLONLAT", longitude(), latitude()});
    }
    if (random() % 2 == 0) {
      add({"BYRADIUS", metres(), "m"});
    } else {
      add({"BYBOX", metres(), metres(), random() % 2 == 0 ? "m" : "mi"});
    }
    if (random() % 2 == 0) add({random() % 2 == 0 ? "ASC" : "DESC"});
    if (random() % 4 == 0) {
      add({"COUNT", std::to_string(random() % 50 + 1)});
      if (random() % 2 == 0) add({"ANY"});
    }
    add({"WITHDIST"});
    servers.ask(words);
  }
}

}  // namespace
}  // namespace weir::kv::testing
