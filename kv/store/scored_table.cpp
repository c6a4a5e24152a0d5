#include "kv/store/scored_table.hpp"

namespace weir::kv {

std::uint32_t ScoredTable::random_height() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return SkipList::random_height(random_ * 0x2545f4914f6cdd1du >> 8);
}

void ScoredTable::insert(std::string_view member, double score) {
  ScoredNode* node = ScoredNode::make(score, member, random_height());
  table_.insert(node);
  order_.insert(node);
}

void ScoredTable::rescore(ScoredNode* node, double score) {
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

void ScoredTable::erase(ScoredNode* node) {
  order_.remove(node);
  table_.erase(node->member());
}

std::size_t ScoredTable::heap_size() const {
  std::size_t size = table_.bucket_bytes() + order_.head_bytes();
  for (const ScoredNode* node = order_.first(); node != nullptr; node = node->next()) {
    size += sizeof(ScoredNode) + node->height * sizeof(ScoredNode::Link) + node->member_size;
  }
  return size;
}

}  // namespace weir::kv
