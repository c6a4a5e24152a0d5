#include "kv/store/zset.hpp"

#include "hash/keyed.hpp"

namespace weir::kv {

std::optional<SortedSet::Found> SortedSet::find(std::string_view member) const {
  if (!small()) {
    ScoredNode* node = table_->find(member);
    return node == nullptr ? std::nullopt : std::optional(Found(nullptr, node, node->score));
  }
  const ScoredPairs::Place pair = pairs_.find(member);
  return pair == pairs_.end() ? std::nullopt : std::optional(Found(pair, nullptr, ScoredPairs::score(pair)));
}

std::size_t SortedSet::rank(const Found& found) const {
  if (!small()) return table_->order().rank(*found.node_);
  return count_pairs([&](ScoredPairs::Place pair) { return pair != found.pair_; });
}

ScoredNode* SortedSet::node_at(std::size_t rank) const {
  const SkipList& order = table_->order();
  if (rank == 0) return order.first();
  return rank + 1 == order.size() ? order.last() : order.at(rank);
}

SortedSet::Scored SortedSet::at(std::size_t rank) const {
  if (!small()) {
    const ScoredNode* node = node_at(rank);
    return {StoredText(node->member()), node->score};
  }
  const ScoredPairs::Place pair = pairs_.at(rank);
  return {StoredText::of(pair), ScoredPairs::score(pair)};
}

void SortedSet::insert(std::string_view member, double score, SmallLimits limits) {
  const bool fits = size() < limits.entries && member.size() <= limits.bytes && pairs_.takes(member);
  // Whoever chooses members does not know the process's key, so cannot choose heights.
  if (small() && !fits) grow(hash::Keyed{}(member));
  small() ? pairs_.insert(member, score) : table_->insert(member, score);
}

void SortedSet::rescore(const Found& found, double score) {
  small() ? pairs_.rescore(found.pair_, score) : table_->rescore(found.node_, score);
}

void SortedSet::erase(const Found& found) {
  small() ? pairs_.erase(found.pair_, 1) : table_->erase(found.node_);
}

void SortedSet::erase(Ranks ranks) {
  if (ranks.empty()) return;
  if (small()) return pairs_.erase(pairs_.at(ranks.first), ranks.size());
  ScoredNode* node = node_at(ranks.first);
  for (std::size_t left = ranks.size(); left > 0; --left) {
    ScoredNode* next = node->next();
    table_->erase(node);
    node = next;
  }
}

void SortedSet::grow(std::uint64_t seed) {
  auto table = std::make_unique<ScoredTable>(seed);
  for_each([&](std::string_view member, double score) {
    table->insert(member, score);
    return true;
  });
  table_ = std::move(table);
  pairs_.clear();
}

void SortedSet::make_small_within(SmallLimits limits) {
  if (small() || size() > limits.entries) return;
  bool fits = true;
  std::size_t bytes = 0;
  for_each([&](std::string_view member, double) {
    bytes += member.size();
    return fits = member.size() <= limits.bytes && bytes < PackedPairs::most_bytes / 2;
  });
  if (!fits) return;
  // The last first: each of them goes in front of the others.
  ScoredPairs pairs;
  for_each(Ranks{0, size()}, Walk::backward, [&](std::string_view member, double score) {
    pairs.insert(member, score);
    return true;
  });
  pairs_ = std::move(pairs);
  table_ = nullptr;
}

SortedSet SortedSet::copy() const {
  SortedSet other;
  if (small()) {
    other.pairs_ = pairs_.copy();
    return other;
  }
  other.table_ = std::make_unique<ScoredTable>(table_->seed());
  for_each([&](std::string_view member, double score) {
    other.table_->insert(member, score);
    return true;
  });
  return other;
}

std::size_t SortedSet::heap_size() const {
  return small() ? pairs_.heap_size() : sizeof(ScoredTable) + table_->heap_size();
}

}  // namespace weir::kv
