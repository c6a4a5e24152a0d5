// A large sorted set: a table finds a member, a skip list orders them; both share nodes. Threading: none.
#pragma once

#include <cstdint>
#include <string_view>

#include "kv/store/skiplist.hpp"
#include "kv/store/table.hpp"

namespace weir::kv {

struct ScoredNodeTraits {
  static std::string_view key(const ScoredNode& node) { return node.member(); }
  static void destroy(ScoredNode* node) { ScoredNode::destroy(node); }
};

class ScoredTable {
 public:
  explicit ScoredTable(std::uint64_t seed) : random_(seed | 1) {}  // for the heights in its skip list

  std::size_t size() const { return table_.size(); }
  const SkipList& order() const { return order_; }

  ScoredNode* find(std::string_view member) { return table_.find(member); }
  void insert(std::string_view member, double score);  // it must not be there yet
  void rescore(ScoredNode* node, double score);
  void erase(ScoredNode* node);

  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    return table_.scan(cursor, visit);
  }

  std::uint64_t seed() const { return random_; }
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) { return table_.free_some(most, ScoredNodeTraits::destroy); }

 private:
  std::uint32_t random_height();

  Table<ScoredNode, ScoredNodeTraits> table_;
  SkipList order_;
  std::uint64_t random_;  // state of a xorshift generator
};

}  // namespace weir::kv
