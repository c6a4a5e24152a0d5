#include "kv/store/zset.hpp"

namespace weir::kv {

std::uint32_t SortedSet::random_height() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return SkipList::random_height(random_ * 0x2545f4914f6cdd1du >> 8);
}

void SortedSet::insert(std::string_view member, double score, SmallLimits limits) {
  if (size() >= limits.entries || member.size() > limits.bytes) small_ = false;
  if (small_) score += 0.0;  // Redis's small form keeps no negative zero
  ScoredNode* node = ScoredNode::make(score, member, random_height());
  table_.insert(node);
  order_.insert(node);
}

void SortedSet::make_small_within(SmallLimits limits) {
  if (size() > limits.entries) return;
  for (const ScoredNode* node = order_.first(); node != nullptr; node = node->next()) {
    if (node->member_size > limits.bytes) return;
  }
  small_ = true;
  for (ScoredNode* node = order_.first(); node != nullptr; node = node->next()) node->score += 0.0;
}

void SortedSet::rescore(ScoredNode* node, double score) {
  if (small_) score += 0.0;
  const bool keeps_place = (node->previous == nullptr || node->previous->before(score, node->member())) &&
                           (node->next() == nullptr || !node->next()->before(score, node->member()));
  if (keeps_place) {
    node->score = score;
    return;
  }
  order_.remove(node);
  node->score = score;
  for (std::uint32_t level = 0; level < node->height; ++level) node->links()[level] = {nullptr, 0};
  order_.insert(node);
}

void SortedSet::erase(ScoredNode* node) {
  order_.remove(node);
  table_.erase(node->member());
}

SortedSet* SortedSet::copy(std::uint64_t seed) const {
  auto* other = new SortedSet(seed);
  other->small_ = small_;
  constexpr SmallLimits none{SIZE_MAX, SIZE_MAX};
  for (const ScoredNode* node = order_.first(); node != nullptr; node = node->next()) {
    other->insert(node->member(), node->score, none);
  }
  return other;
}

std::size_t SortedSet::heap_size() const {
  std::size_t size = table_.bucket_bytes() + order_.head_bytes();
  for (const ScoredNode* node = order_.first(); node != nullptr; node = node->next()) {
    size += sizeof(ScoredNode) + node->height * sizeof(ScoredNode::Link) + node->member_size;
  }
  return size;
}

}  // namespace weir::kv
