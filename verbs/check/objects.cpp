#include "verbs/check/objects.hpp"

#include <algorithm>
#include <atomic>

namespace weir::check {
namespace {

constinit std::atomic<bool> any_region = false;

}  // namespace

bool has_regions() { return any_region.load(std::memory_order_relaxed); }

const char* name_of(Kind kind) {
  constexpr const char* names[] = {
      "context",    "protection domain",    "memory region",  "completion queue", "completion channel",
      "queue pair", "shared receive queue", "address handle", "memory window"};
  return names[static_cast<std::size_t>(kind)];
}

void Objects::created(const void* handle, Object object) {
  const std::lock_guard lock(mutex_);
  live_[handle] = std::move(object);
}

std::optional<Object> Objects::destroyed_before(const void* handle, Place& where) const {
  const std::lock_guard lock(mutex_);
  if (live_.contains(handle)) return std::nullopt;
  const auto last = std::ranges::find(gone_.rbegin(), gone_.rend(), handle, &Gone::handle);
  if (last == gone_.rend()) return std::nullopt;
  where = last->where;
  return last->object;
}

void Objects::destroyed(const void* handle, const Place& where) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(handle);
  if (found == live_.end()) return;
  gone_.push_back({handle, std::move(found->second), where});
  if (gone_.size() > max_remembered) gone_.pop_front();
  live_.erase(found);
}

std::optional<Object> Objects::find(const void* handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(handle);
  return found != live_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<Object> Objects::users_of(const void* handle) const {
  const std::lock_guard lock(mutex_);
  std::vector<Object> users;
  for (const auto& [of, object] : live_)
    if (std::ranges::find(object.made_from, handle) != object.made_from.end()) users.push_back(object);
  return users;
}

std::vector<Object> Objects::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Object> every;
  for (const auto& [handle, object] : live_) every.push_back(object);
  return every;
}

void Objects::registered(const Region& region) {
  const std::lock_guard lock(mutex_);
  regions_[region.lkey] = region;
  by_base_.emplace(region.base, region.lkey);
  any_region.store(true, std::memory_order_relaxed);
  longest_region_ = std::max(longest_region_, region.length);
}

void Objects::deregistered(std::uint32_t lkey, const Place& where) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(lkey);
  if (found == regions_.end()) return;
  const auto [first, last] = by_base_.equal_range(found->second.base);
  for (auto row = first; row != last; ++row) {
    if (row->second != lkey) continue;
    by_base_.erase(row);
    break;
  }
  found->second.deregistered = where;
  gone_regions_.push_back(found->second);
  if (gone_regions_.size() > max_remembered) gone_regions_.pop_front();
  regions_.erase(found);
}

std::optional<Region> Objects::region(std::uint32_t key) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = regions_.find(key); found != regions_.end()) return found->second;
  const auto last = std::ranges::find(gone_regions_.rbegin(), gone_regions_.rend(), key, &Region::lkey);
  return last != gone_regions_.rend() ? std::optional(*last) : std::nullopt;
}

std::optional<Region> Objects::region_at(std::uint64_t base, std::uint64_t length) const {
  const std::lock_guard lock(mutex_);
  auto row = by_base_.lower_bound(base > longest_region_ ? base - longest_region_ : 0);
  for (; row != by_base_.end() && row->first < base + length; ++row) {
    const Region& region = regions_.at(row->second);
    if (region.base + region.length > base && region.length != 0) return region;
  }
  return std::nullopt;
}

void Objects::forget_all() {
  const std::lock_guard lock(mutex_);
  live_.clear();
  gone_.clear();
  regions_.clear();
  gone_regions_.clear();
  by_base_.clear();
  any_region.store(false, std::memory_order_relaxed);
}

Objects& objects() {
  static auto* const one = new Objects;
  return *one;
}

}  // namespace weir::check
