// A sorted set: each member once, ordered by score. A table finds a member, a skip list orders them; both
// share nodes.
//
// Redis keeps small ones in another form and OBJECT ENCODING says which; here that is a flag that follows the
// same limits.
#pragma once

#include <cstdint>
#include <string_view>

#include "kv/store/hash.hpp"
#include "kv/store/skiplist.hpp"
#include "kv/store/table.hpp"

namespace weir::kv {

struct ScoredNodeTraits {
  static std::string_view key(const ScoredNode& node) { return node.member(); }
  static void destroy(ScoredNode* node) { ScoredNode::destroy(node); }
};

class SortedSet {
 public:
  explicit SortedSet(std::uint64_t seed) : random_(seed | 1) {}  // for the heights in its skip list

  std::size_t size() const { return table_.size(); }
  bool small() const { return small_; }

  ScoredNode* find(std::string_view member) { return table_.find(member); }
  void insert(std::string_view member, double score, SmallLimits limits);  // it must not be there yet
  void rescore(ScoredNode* node, double score);
  void erase(ScoredNode* node);
  // For one that was filled without limits: takes the small form if that is allowed.
  void make_small_within(SmallLimits limits);

  const SkipList& order() const { return order_; }

  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    if (!small_) return table_.scan(cursor, [&](const ScoredNode& node) { visit(node); });
    for (const ScoredNode* node = order_.first(); node != nullptr; node = node->next()) visit(*node);
    return 0;
  }

  SortedSet* copy(std::uint64_t seed) const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) { return table_.free_some(most, ScoredNodeTraits::destroy); }

 private:
  std::uint32_t random_height();

  bool small_ = true;
  Table<ScoredNode, ScoredNodeTraits> table_;
  SkipList order_;
  std::uint64_t random_;  // state of a xorshift generator
};

}  // namespace weir::kv
