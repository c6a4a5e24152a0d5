// The keys that MIGRATE copies to other servers and has not deleted here yet, and whether they have changed
// since they were copied.
//
// MIGRATE does not stop the server, so a key may change between its copy and the answer of the other server.
// Every change passes through Effects, which reports it here. A key is under way for one MIGRATE at a time: a
// second one would take the deletion by the first for a change. Threading: the server's one thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <string_view>
#include <utility>

#include "hash/keyed.hpp"

namespace weir::kv {

class KeysUnderWay {
 public:
  bool any() const { return !changed_.empty(); }
  // False: the key is under way already.
  bool begin(int db, std::string_view key) { return changed_.emplace(Key(db, key), false).second; }
  void end(int db, std::string_view key) { changed_.erase(Key(db, key)); }
  // It is copied as it is now.
  void copied(int db, std::string_view key) { changed_.at(Key(db, key)) = false; }
  bool changed(int db, std::string_view key) const { return changed_.at(Key(db, key)); }

  void touch(int db, std::string_view key) {
    if (const auto it = changed_.find(Key(db, key)); it != changed_.end()) it->second = true;
  }
  void touch_all() {
    for (auto& [key, changed] : changed_) changed = true;
  }

 private:
  using Key = std::pair<int, std::string>;
  absl::flat_hash_map<Key, bool, hash::Keyed> changed_;
};

}  // namespace weir::kv
