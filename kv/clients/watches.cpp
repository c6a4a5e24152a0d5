#include "kv/clients/watches.hpp"

#include <algorithm>

#include "kv/clients/client.hpp"
#include "kv/store/keyspace.hpp"
#include "kv/text/spare_room.hpp"

namespace weir::kv {

namespace {
bool has_expired(Keyspace& db, std::string_view key, std::int64_t now_ms) {
  const Record* record = db.records().find(key);
  return record != nullptr && record->expires_at_ms != Record::never && record->expires_at_ms <= now_ms;
}
auto find(Client& client, int db, std::string_view key) {
  return std::ranges::find_if(client.transaction.watched, [&](const Transaction::Watched& candidate) {
    return candidate.db == db && candidate.key == key;
  });
}
}  // namespace

void Watches::watch(Client& client, Keyspace& db, std::string_view key, std::int64_t now_ms) {
  std::vector<Client*>& watchers = watchers_[Key(db.index(), key)];
  if (std::find(watchers.begin(), watchers.end(), &client) != watchers.end()) return;
  watchers.push_back(&client);
  client.transaction.watched.push_back({db.index(), std::string(key), has_expired(db, key, now_ms)});
  client.transaction.watched_bytes += sizeof(Transaction::Watched) + key.size();
}

void Watches::unwatch(Client& client) {
  for (const Transaction::Watched& watched : client.transaction.watched) {
    auto it = watchers_.find(Key(watched.db, watched.key));
    if (it == watchers_.end()) continue;
    std::erase(it->second, &client);
    if (it->second.empty()) watchers_.erase(it);
  }
  free_if_empty(watchers_);
  client.transaction.watched = {};
  client.transaction.watched_bytes = 0;
}

void Watches::touch(int db, std::string_view key) {
  const auto it = watchers_.find(Key(db, key));
  if (it == watchers_.end()) return;
  for (Client* client : it->second) client->transaction.broken = true;
}

void Watches::expire(int db, std::string_view key) {
  const auto it = watchers_.find(Key(db, key));
  if (it == watchers_.end()) return;
  for (Client* client : it->second) {
    const auto watched = find(*client, db, key);
    // From now on it counts as a missing key: a new value under its name is a change.
    if (!std::exchange(watched->expired, false)) client->transaction.broken = true;
  }
}

void Watches::touch_all(Keyspace& db, Keyspace* replaced_by, std::int64_t now_ms) {
  for (auto& [key, watchers] : watchers_) {
    if (key.first != db.index()) continue;
    const bool had = db.records().find(key.second) != nullptr;
    const bool gets = replaced_by != nullptr && replaced_by->records().find(key.second) != nullptr;
    if (!had && !gets) continue;
    const bool has_live = had && !has_expired(db, key.second, now_ms);
    const bool gets_live = gets && !has_expired(*replaced_by, key.second, now_ms);
    for (Client* client : watchers) {
      if (has_live || gets_live) {
        client->transaction.broken = true;
        continue;
      }
      // A key that has expired is as good as none. It is a change if the client watched it while it lived.
      Transaction::Watched& watched = *find(*client, db.index(), key.second);
      if (watched.expired || !had) {
        watched.expired = gets;
      } else {
        client->transaction.broken = true;
      }
    }
  }
}

bool Watches::any_expired(Client& client, const std::vector<std::unique_ptr<Keyspace>>& databases,
                          std::int64_t now_ms) const {
  return std::ranges::any_of(client.transaction.watched, [&](const Transaction::Watched& watched) {
    return !watched.expired &&
           has_expired(*databases[static_cast<std::size_t>(watched.db)], watched.key, now_ms);
  });
}

}  // namespace weir::kv
