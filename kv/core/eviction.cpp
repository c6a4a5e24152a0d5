#include "kv/core/eviction.hpp"

#include <algorithm>

#include "kv/text/heap.hpp"

namespace weir::kv {

namespace {

struct Candidate {
  Keyspace* db = nullptr;
  Record* record = nullptr;
};

bool only_volatile(EvictionPolicy policy) { return policy <= EvictionPolicy::volatile_ttl; }

}  // namespace

// Bytes above maxmemory.
std::size_t Eviction::excess() const {
  const auto limit = static_cast<std::size_t>(settings_.maxmemory);
  const std::size_t used = used_memory();
  if (used <= limit) return 0;
  const std::size_t counted = used - std::min(used, uncounted_());
  return counted - std::min(counted, limit);
}

bool Eviction::make_room() {
  under_way_ = false;
  const auto policy = static_cast<EvictionPolicy>(settings_.maxmemory_policy);
  constexpr int steps_at_once = 500;  // less than a millisecond
  for (int step = 0; excess() > 0; ++step) {
    if (step == steps_at_once) return under_way_ = true;
    if (lazy_free_.any()) {
      lazy_free_.free_some(20);
    } else if (policy == EvictionPolicy::noeviction || !evict_one(policy)) {
      return false;
    }
  }
  return true;
}

bool Eviction::evict_one(EvictionPolicy policy) {
  Candidate best;
  auto better = [&](const Record& a, const Record& b) {
    if (policy == EvictionPolicy::volatile_ttl) return a.expires_at_ms < b.expires_at_ms;
    if (counts_frequency(policy)) return use_clock_.frequency(a) < use_clock_.frequency(b);
    return a.accessed < b.accessed;
  };
  const bool random_choice =
      policy == EvictionPolicy::allkeys_random || policy == EvictionPolicy::volatile_random;
  const std::int64_t samples = random_choice ? 1 : settings_.maxmemory_samples;
  const auto drawn = [this] { return random_(); };
  const std::size_t first_db = random_() % databases_.size();
  for (std::size_t i = 0; i < databases_.size(); ++i) {
    Keyspace& db = *databases_[(first_db + i) % databases_.size()];
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
