// Keeping the data within maxmemory: choosing what to evict.
//
// As in Redis the policies are approximate: of a few random keys the best to go is evicted.
#include "kv/heap.hpp"
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
  if (paused_ != Paused::nothing) return true;  // the data stays as it is, and nothing that adds to it runs
  const auto limit = static_cast<std::size_t>(settings.maxmemory);
  const auto policy = static_cast<EvictionPolicy>(settings.maxmemory_policy);
  constexpr int most_evictions = 1000;  // in one go
  for (int i = 0; i < most_evictions; ++i) {
    while (used_memory() > limit && lazy_free.any()) lazy_free.free_some(1000);
    if (used_memory() <= limit) return true;
    if (policy == EvictionPolicy::noeviction || !evict_one(policy)) break;
  }
  return used_memory() <= limit;
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
