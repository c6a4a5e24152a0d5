// Members ordered by score, then by bytes, with ranks: a skip list whose links know how many members they
// jump over.
//
// Height is geometric with p = 1/4, so a search looks at about log4(n) * 2 nodes and a node has 1.33 links on
// average. Nodes are owned by the table beside it (see SortedSet); this orders them. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::kv {

struct ScoredNode {
  struct Link {
    ScoredNode* next;
    std::size_t jump;  // members from this one to `next`; to the end where there is none
  };

  double score;
  ScoredNode* previous;
  std::uint32_t member_size;
  std::uint32_t height;
  // Links and then the member's bytes follow.

  Link* links() { return reinterpret_cast<Link*>(this + 1); }
  const Link* links() const { return reinterpret_cast<const Link*>(this + 1); }
  ScoredNode* next() const { return links()[0].next; }
  std::string_view member() const { return {reinterpret_cast<const char*>(links() + height), member_size}; }
  bool before(double other_score, std::string_view other) const {
    return score < other_score || (score == other_score && member() < other);
  }

  static ScoredNode* make(double score, std::string_view member, std::uint32_t height);
  static void destroy(ScoredNode* node);
};
static_assert(sizeof(ScoredNode) % alignof(ScoredNode::Link) == 0);

class SkipList {
 public:
  static constexpr std::uint32_t most_height = 32;

  SkipList();
  SkipList(SkipList&& other) noexcept;
  SkipList& operator=(SkipList&&) = delete;
  ~SkipList();

  static std::uint32_t random_height(std::uint64_t random);

  void insert(ScoredNode* node);
  void remove(ScoredNode* node);

  std::size_t size() const { return size_; }
  std::size_t head_bytes() const { return sizeof(ScoredNode) + head_->height * sizeof(ScoredNode::Link); }
  ScoredNode* first() const { return head_->next(); }
  ScoredNode* last() const { return last_; }
  // 0 is the first.
  ScoredNode* at(std::size_t rank) const;
  std::size_t rank(const ScoredNode& node) const;

  // For how many nodes `before` is true; they are the first ones.
  template <class Before>
  std::size_t count(Before before) const {
    const ScoredNode* node = head_;
    std::size_t passed = 0;
    for (std::uint32_t level = height_; level-- > 0;) {
      for (const ScoredNode* next; (next = node->links()[level].next) != nullptr && before(*next);
           node = next)
        passed += node->links()[level].jump;
    }
    return passed;
  }

 private:
  void raise_head(std::uint32_t height);

  // No member; its `previous` is unused. As high as the highest node there ever was: most lists are short,
  // and links for `most_height` levels would be larger than all their members.
  ScoredNode* head_;
  ScoredNode* last_ = nullptr;
  std::size_t size_ = 0;
  std::uint32_t height_ = 1;
};

}  // namespace weir::kv
