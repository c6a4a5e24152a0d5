#include "kv/store/stream_group.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace weir::kv {

StreamConsumer& StreamGroup::add_consumer(std::string_view name, std::int64_t now_ms) {
  auto consumer = std::make_unique<StreamConsumer>();
  consumer->name = name;
  consumer->seen_ms = now_ms;
  return *consumers_.emplace(std::string(name), std::move(consumer)).first->second;
}

void StreamGroup::remove_consumer(std::string_view name) {
  const auto it = consumers_.find(name);
  if (it == consumers_.end()) return;
  for (const StreamId id : it->second->pending) pending_.erase(id);
  consumers_.erase(it);
}

StreamGroup::Pending& StreamGroup::give(StreamId id, StreamConsumer& consumer) {
  // Mostly the newest of all.
  const auto end = pending_.end();
  const auto it = pending_.empty() || std::prev(end)->first < id ? pending_.emplace_hint(end, id, Pending{})
                                                                 : pending_.try_emplace(id).first;
  Pending& pending = it->second;
  if (pending.consumer == &consumer) return pending;
  if (pending.consumer != nullptr) pending.consumer->pending.erase(id);
  consumer.pending.insert(consumer.pending.end(), id);
  pending.consumer = &consumer;
  return pending;
}

bool StreamGroup::take_back(StreamId id) {
  const auto it = pending_.find(id);
  if (it == pending_.end()) return false;
  it->second.consumer->pending.erase(id);
  pending_.erase(it);
  return true;
}

std::unique_ptr<StreamGroup> StreamGroup::copy() const {
  auto other = std::make_unique<StreamGroup>(last_id, entries_read);
  for (const auto& [name, consumer] : consumers_) other->add_consumer(name, consumer->seen_ms);
  for (const auto& [id, pending] : pending_) {
    Pending& same = other->give(id, *other->find_consumer(pending.consumer->name));
    same.delivered_ms = pending.delivered_ms;
    same.deliveries = pending.deliveries;
  }
  return other;
}

std::size_t StreamGroup::heap_size() const {
  constexpr std::size_t in_tree = sizeof(PendingEntries::value_type) + sizeof(StreamId);
  std::size_t size = sizeof(StreamGroup) + pending_.size() * in_tree;
  for (const auto& [name, consumer] : consumers_)
    size += sizeof(*consumer) + 2 * (sizeof(std::string) + name.size());
  return size;
}

bool StreamGroup::free_some(std::size_t most) {
  if (!pending_.empty()) {
    const std::size_t some = std::min(most, pending_.size());
    pending_.erase(pending_.begin(), std::next(pending_.begin(), static_cast<std::ptrdiff_t>(some)));
    return true;
  }
  for (std::size_t freed = 0; !consumers_.empty() && freed < most;) {
    auto& pending = consumers_.begin()->second->pending;
    const std::size_t some = std::min(most - freed, pending.size());
    pending.erase(pending.begin(), std::next(pending.begin(), static_cast<std::ptrdiff_t>(some)));
    if (pending.empty()) consumers_.erase(consumers_.begin());
    freed += some + 1;
  }
  return !consumers_.empty();
}

}  // namespace weir::kv
