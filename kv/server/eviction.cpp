// Keeping the data within maxmemory: choosing what to evict.
//
// As in Redis the policies are approximate: of a few random keys the best to go is evicted. Nor does a
// command wait until all that is too much is gone (maxmemory may have been lowered by gigabytes): so much is
// done for each, the rest between the rounds, and only where nothing is left to evict is it refused.
#include "kv/heap.hpp"
#include "kv/replication/replication.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

struct Candidate {
  Keyspace* db = nullptr;
  Record* record = nullptr;
};

bool only_volatile(EvictionPolicy policy) { return policy <= EvictionPolicy::volatile_ttl; }

}  // namespace

bool Server::make_room() {
  room_is_being_made_ = false;
  if (replication->follows()) return true;  // the primary says what goes
  // The data stays as it is, and nothing that adds to it runs; or what acts on it is still to be read.
  if (paused_ != Paused::nothing || loading) return true;
  const auto limit = static_cast<std::size_t>(settings.maxmemory);
  const auto policy = static_cast<EvictionPolicy>(settings.maxmemory_policy);
  constexpr int steps_at_once = 500;  // less than a millisecond
  for (int step = 0; used_memory() > limit; ++step) {
    if (step == steps_at_once) return room_is_being_made_ = true;
    if (lazy_free.any()) {
      lazy_free.free_some(20);
    } else if (policy == EvictionPolicy::noeviction || !evict_one(policy)) {
      return false;
    }
  }
  return true;
}

bool Server::evict_one(EvictionPolicy policy) {
  Candidate best;
  auto better = [&](const Record& a, const Record& b) {
    if (policy == EvictionPolicy::volatile_ttl) return a.expires_at_ms < b.expires_at_ms;
    if (counts_frequency(policy)) return use_clock.frequency(a) < use_clock.frequency(b);
    return a.accessed < b.accessed;
  };
  const bool random_choice =
      policy == EvictionPolicy::allkeys_random || policy == EvictionPolicy::volatile_random;
  const std::int64_t samples = random_choice ? 1 : settings.maxmemory_samples;
  const auto drawn = [this] { return random(); };
  const std::size_t first_db = random() % databases.size();
  for (std::size_t i = 0; i < databases.size(); ++i) {
    Keyspace& db = *databases[(first_db + i) % databases.size()];
    for (std::int64_t s = 0; s < samples; ++s) {
      Record* record = policy == EvictionPolicy::volatile_ttl ? db.first_to_expire()
                       : only_volatile(policy)                ? db.sample_volatile(drawn)
                                                              : db.sample_roughly(drawn);
      if (record == nullptr) break;
      if (best.record == nullptr || better(*record, *best.record)) best = {&db, record};
    }
    if (random_choice && best.record != nullptr) break;
  }
  if (best.record == nullptr) return false;
  best.db->remove(*best.record, Keyspace::Gone::evicted);
  return true;
}

}  // namespace weir::kv
