#include "kv/store/skiplist.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace weir::kv {

ScoredNode* ScoredNode::make(double score, std::string_view member, std::uint32_t height) {
  void* raw = ::operator new(sizeof(ScoredNode) + height * sizeof(Link) + member.size());
  auto* node = new (raw) ScoredNode{score, nullptr, static_cast<std::uint32_t>(member.size()), height};
  std::fill_n(node->links(), height, Link{nullptr, 0});
  if (!member.empty()) std::memcpy(static_cast<void*>(node->links() + height), member.data(), member.size());
  return node;
}

void ScoredNode::destroy(ScoredNode* node) { ::operator delete(node); }

SkipList::SkipList() : head_(ScoredNode::make(0, {}, 1)) {}

SkipList::SkipList(SkipList&& other) noexcept
    : head_(std::exchange(other.head_, nullptr)),
      last_(other.last_),
      size_(other.size_),
      height_(other.height_) {}

SkipList::~SkipList() {
  if (head_ != nullptr) ScoredNode::destroy(head_);
}

std::uint32_t SkipList::random_height(std::uint64_t random) {
  // Each two zero bits at the end are one more level: probability 1/4.
  const auto zeros = static_cast<std::uint32_t>(std::countr_zero(random | (std::uint64_t{1} << 62)));
  return std::min(zeros / 2 + 1, most_height);
}

void SkipList::raise_head(std::uint32_t height) {
  ScoredNode* higher = ScoredNode::make(0, {}, height);
  std::copy_n(head_->links(), head_->height, higher->links());
  ScoredNode::destroy(std::exchange(head_, higher));
}

void SkipList::insert(ScoredNode* node) {
  if (node->height > head_->height) raise_head(node->height);
  std::array<ScoredNode*, most_height> before;
  std::array<std::size_t, most_height> rank;  // of before[level], counted from 1; 0 is the head
  ScoredNode* at = head_;
  std::size_t passed = 0;
  for (std::uint32_t level = height_; level-- > 0;) {
    for (ScoredNode* next;
         (next = at->links()[level].next) != nullptr && next->before(node->score, node->member());) {
      passed += at->links()[level].jump;
      at = next;
    }
    before[level] = at;
    rank[level] = passed;
  }
  for (; height_ < node->height; ++height_) {
    before[height_] = head_;
    rank[height_] = 0;
    head_->links()[height_].jump = size_;
  }
  for (std::uint32_t level = 0; level < node->height; ++level) {
    ScoredNode::Link& link = before[level]->links()[level];
    // From `before[level]` to the node just before the new one.
    const std::size_t distance = rank[0] - rank[level];
    node->links()[level] = {link.next, link.jump - distance};
    link = {node, distance + 1};
  }
  for (std::uint32_t level = node->height; level < height_; ++level) ++before[level]->links()[level].jump;
  node->previous = before[0] == head_ ? nullptr : before[0];
  (node->next() != nullptr ? node->next()->previous : last_) = node;
  ++size_;
}

void SkipList::remove(ScoredNode* node) {
  ScoredNode* at = head_;
  for (std::uint32_t level = height_; level-- > 0;) {
    for (ScoredNode* next;
         (next = at->links()[level].next) != nullptr && next->before(node->score, node->member());) {
      at = next;
    }
    ScoredNode::Link& link = at->links()[level];
    if (link.next == node) {
      link = {node->links()[level].next, link.jump + node->links()[level].jump - 1};
    } else {
      --link.jump;
    }
  }
  (node->next() != nullptr ? node->next()->previous : last_) = node->previous;
  while (height_ > 1 && head_->links()[height_ - 1].next == nullptr) --height_;
  --size_;
}

ScoredNode* SkipList::at(std::size_t rank) const {
  std::size_t left = rank + 1;
  ScoredNode* node = head_;
  for (std::uint32_t level = height_; level-- > 0;) {
    while (node->links()[level].next != nullptr && node->links()[level].jump <= left) {
      left -= node->links()[level].jump;
      node = node->links()[level].next;
    }
    if (left == 0) return node;
  }
  return nullptr;
}

std::size_t SkipList::rank(const ScoredNode& node) const {
  std::size_t passed = 0;
  const ScoredNode* at = head_;
  for (std::uint32_t level = height_; level-- > 0;) {
    for (const ScoredNode* next; (next = at->links()[level].next) != nullptr &&
                                 (next == &node || next->before(node.score, node.member()));) {
      passed += at->links()[level].jump;
      at = next;
    }
    if (at == &node) break;
  }
  return passed - 1;
}

}  // namespace weir::kv
