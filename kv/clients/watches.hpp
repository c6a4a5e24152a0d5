// The keys that clients watch, for WATCH.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hash/keyed.hpp"

namespace weir::kv {

class Client;
class Keyspace;

class Watches {
 public:
  bool any() const { return !watchers_.empty(); }
  void watch(Client& client, Keyspace& db, std::string_view key, std::int64_t now_ms);
  void unwatch(Client& client);
  // The key changed: clients that watch it cannot EXEC.
  void touch(int db, std::string_view key);
  // The key is removed as expired: likewise, except for clients that began to watch it after it had expired.
  void expire(int db, std::string_view key);
  // Every key of a database changes: keys that exist in it or (for SWAPDB) in
  // `replaced_by` count as changed.
  void touch_all(Keyspace& db, Keyspace* replaced_by, std::int64_t now_ms);
  // Whether a key that the client watches has expired since.
  bool any_expired(Client& client, const std::vector<std::unique_ptr<Keyspace>>& databases,
                   std::int64_t now_ms) const;

 private:
  using Key = std::pair<int, std::string>;
  absl::flat_hash_map<Key, std::vector<Client*>, hash::Keyed> watchers_;
};

}  // namespace weir::kv
