// Keeping the data within maxmemory: choosing what to evict.
//
// As in Redis the policies are approximate: the best of a few random keys is evicted. A command does not wait
// until all the excess is gone, because maxmemory may have been lowered by gigabytes. Each command evicts a
// little, the rest goes between rounds, and a command is refused only if nothing is left to evict.
//
// Memory that evicting cannot free does not count (uncounted_memory.hpp). Else each key that is evicted would
// leave as much to evict as before, and the databases would end empty.
//
// Threading: the server's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kv/settings/settings.hpp"
#include "kv/store/keyspace.hpp"
#include "kv/store/lazy_free.hpp"

namespace weir::kv {

class Eviction {
 public:
  using Databases = std::vector<std::unique_ptr<Keyspace>>;

  Eviction(const Databases& databases, const UseClock& use_clock, LazyFree& lazy_free,
           const Settings& settings, std::function<std::uint64_t()> random,
           std::function<std::size_t()> uncounted)
      : databases_(databases),
        use_clock_(use_clock),
        lazy_free_(lazy_free),
        settings_(settings),
        random_(std::move(random)),
        uncounted_(std::move(uncounted)) {}

  // Evicts until the data fits maxmemory, or a limited number of keys. Returns false if
  // nothing more can be evicted.
  bool make_room();
  // More keys must go than one call evicts: call make_room() again soon.
  bool under_way() const { return under_way_; }
  void pause() { under_way_ = false; }
  // A lower maxmemory must take effect even if no client asks for anything.
  void settings_changed() { under_way_ = settings_.maxmemory > 0; }

 private:
  std::size_t excess() const;
  bool evict_one(EvictionPolicy policy);

  const Databases& databases_;
  const UseClock& use_clock_;
  LazyFree& lazy_free_;
  const Settings& settings_;
  const std::function<std::uint64_t()> random_;
  const std::function<std::size_t()> uncounted_;
  bool under_way_ = false;
};

}  // namespace weir::kv
