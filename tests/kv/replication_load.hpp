// A seeded load of all commands that change data, and what two servers must have in common after it.
#pragma once

#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kv/resp/words.hpp"
#include "tests/kv/effect_rows.hpp"
#include "tests/kv/redis_program.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::kv::testing {

class ReplicationLoad {
 public:
  enum class Commands { of_redis_7_0, all };

  explicit ReplicationLoad(unsigned seed, Commands commands = Commands::of_redis_7_0) : random_(seed) {
    const std::span<const EffectRow> older(effect_rows);
    for (const EffectRow& row :
         commands == Commands::all ? all_effect_rows() : std::vector(older.begin(), older.end())) {
      for (const std::string& line : split_at_semicolons(row.before)) lines_.push_back(line);
      // Blocking commands would block.
      if (!row.name.starts_with("b") || row.name.starts_with("bit")) lines_.emplace_back(row.command);
    }
    // Else little would ever be there. SORT BY leaves open in which order equal elements come.
    std::erase_if(lines_, [](const std::string& line) {
      return line.starts_with("FLUSH") ||
             (line.starts_with("SORT") && line.find(" BY ") != std::string::npos);
    });
  }

  // Runs one command or transaction, in any database.
  void step(WireClient& client) {
    if (random_() % 16 == 0) client.call({"SELECT", std::to_string(random_() % 3)});
    if (random_() % 512 == 0) client.call({random_() % 2 == 0 ? "FLUSHDB" : "FLUSHALL"});
    if (random_() % 8 != 0) return run(client);
    client.call({"MULTI"});
    for (auto left = random_() % 4; left > 0; --left) run(client);
    client.call({"EXEC"});
  }
  unsigned random() { return static_cast<unsigned>(random_()); }

 private:
  void run(WireClient& client) { client.call(*split_words(lines_[random_() % lines_.size()])); }

  std::mt19937 random_;
  std::vector<std::string> lines_;
};

// The digest of a value. That of a sorted set is of how the server writes scores, in which newer servers
// differ.
inline std::string value_seen(WireClient& client, const std::string& key) {
  if (is_redis_7_0() || client.call({"TYPE", key}) != "+zset\r\n")
    return client.call({"DEBUG", "DIGEST-VALUE", key});
  std::vector<std::string> parts = elements(client.call({"ZRANGE", key, "0", "-1", "WITHSCORES"}));
  std::string all;
  for (std::size_t i = 1; i + 1 < parts.size(); i += 2) {
    const std::string score = parts[i + 1].substr(parts[i + 1].find("\r\n") + 2);
    all += parts[i] + std::to_string(std::strtod(score.c_str(), nullptr)) + ' ';
  }
  return all;
}

// The digest of all data, the expiry time of each key, and the libraries of functions.
inline std::vector<std::string> state_seen(WireClient& client) {
  std::string functions = client.call({"FUNCTION", "DUMP"});
  constexpr std::size_t version_and_checksum = 12;  // and the line's end
  functions.resize(functions.size() - version_and_checksum);
  std::vector<std::string> all{is_redis_7_0() ? client.call({"DEBUG", "DIGEST"}) : "", functions};
  for (int db = 0; db < 6; ++db) {
    client.call({"SELECT", std::to_string(db)});
    std::vector<std::string> keys = elements(client.call({"KEYS", "*"}));
    std::sort(keys.begin() + 1, keys.end());
    for (std::size_t i = 1; i < keys.size(); ++i) {
      const std::string name = keys[i].substr(keys[i].find("\r\n") + 2);
      const std::string key = name.substr(0, name.size() - 2);
      all.push_back(std::to_string(db) + ' ' + key + ' ' + client.call({"PEXPIRETIME", key}) +
                    value_seen(client, key));
    }
  }
  client.call({"SELECT", "0"});
  return all;
}

}  // namespace weir::kv::testing
