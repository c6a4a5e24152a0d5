// A sorted set: each member once, ordered by score, then by bytes. A small one is packed pairs; past the
// limits it becomes a table with a skip list beside it, and stays one. (Redis changes its form at the same
// limits, and OBJECT ENCODING says which it is.)
//
// Members are named by their ranks, 0 for the first. Finding a rank or a member takes logarithmic time, in a
// small one time in proportion to its size.
//
// It lies in the Value that holds it (kv/store/value.hpp). What it shows is valid until it changes.
// Threading: none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "kv/store/scored_pairs.hpp"
#include "kv/store/scored_table.hpp"
#include "kv/store/small_limits.hpp"
#include "kv/store/stored_text.hpp"
#include "kv/store/walk.hpp"

namespace weir::kv {

// The members from rank `first` to before rank `end`.
struct Ranks {
  std::size_t first = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - first; }
  bool empty() const { return first == end; }
};

class SortedSet {
 public:
  struct Scored {
    StoredText member;
    double score;
  };

  // Where a member is.
  class Found {
   public:
    double score() const { return score_; }

   private:
    friend class SortedSet;
    Found(ScoredPairs::Place pair, ScoredNode* node, double score)
        : pair_(pair), node_(node), score_(score) {}

    ScoredPairs::Place pair_;  // in a small one
    ScoredNode* node_;         // in a large one
    double score_;
  };

  std::size_t size() const { return small() ? pairs_.size() : table_->size(); }
  bool small() const { return table_ == nullptr; }

  std::optional<Found> find(std::string_view member) const;
  std::size_t rank(const Found& found) const;
  Scored at(std::size_t rank) const;

  void insert(std::string_view member, double score, SmallLimits limits);  // it must not be there yet
  void rescore(const Found& found, double score);
  void erase(const Found& found);
  void erase(Ranks ranks);
  // For one that was filled without limits: takes the small form if that is allowed.
  void make_small_within(SmallLimits limits);

  // For how many scores `before` is true; it is true for those of the first members.
  template <class Before>
  std::size_t count_scores(Before before) const {
    if (!small()) return table_->order().count([&](const ScoredNode& node) { return before(node.score); });
    return count_pairs([&](ScoredPairs::Place pair) { return before(ScoredPairs::score(pair)); });
  }
  // The same for members, where all have one score.
  template <class Before>
  std::size_t count_members(Before before) const {
    if (!small()) return table_->order().count([&](const ScoredNode& node) { return before(node.member()); });
    return count_pairs([&](ScoredPairs::Place pair) {
      IntText room;
      return before(listpack::text(pair, room));
    });
  }

  // visit(const StoredText& member, double score); stops when it returns false.
  template <class Visit>
  void for_each(Ranks ranks, Walk walk, Visit visit) const {
    if (ranks.empty()) return;
    small() ? walk_pairs(ranks, walk, visit) : walk_nodes(ranks, walk, visit);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for_each(Ranks{0, size()}, Walk::forward, visit);
  }
  // visit(const StoredText& member, double score)
  template <class Visit>
  std::uint64_t scan(std::uint64_t cursor, Visit visit) const {
    if (!small()) {
      return table_->scan(cursor,
                          [&](const ScoredNode& node) { visit(StoredText(node.member()), node.score); });
    }
    for_each([&](const StoredText& member, double score) {
      visit(member, score);
      return true;
    });
    return 0;
  }

  SortedSet copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most) { return !small() && table_->free_some(most); }

 private:
  template <class Before>
  std::size_t count_pairs(Before before) const {
    std::size_t count = 0;
    for (auto pair = pairs_.begin(); pair != pairs_.end() && before(pair); pair = ScoredPairs::next(pair))
      ++count;
    return count;
  }
  template <class Visit>
  void walk_pairs(Ranks ranks, Walk walk, Visit& visit) const {
    ScoredPairs::Place pair = pairs_.at(ranks.first);
    if (walk == Walk::forward) {
      for (std::size_t i = ranks.first; i < ranks.end; ++i, pair = ScoredPairs::next(pair)) {
        if (!visit(StoredText::of(pair), ScoredPairs::score(pair))) return;
      }
      return;
    }
    std::vector<ScoredPairs::Place> places;  // pairs lead forward only
    places.reserve(ranks.size());
    for (; places.size() < ranks.size(); pair = ScoredPairs::next(pair)) places.push_back(pair);
    for (auto place = places.rbegin(); place != places.rend(); ++place) {
      if (!visit(StoredText::of(*place), ScoredPairs::score(*place))) return;
    }
  }
  template <class Visit>
  void walk_nodes(Ranks ranks, Walk walk, Visit& visit) const {
    const bool forward = walk == Walk::forward;
    const ScoredNode* node = node_at(forward ? ranks.first : ranks.end - 1);
    for (std::size_t i = ranks.first; i < ranks.end; ++i, node = forward ? node->next() : node->previous) {
      if (!visit(StoredText(node->member()), node->score)) return;
    }
  }

  ScoredNode* node_at(std::size_t rank) const;
  void grow(std::uint64_t seed);

  ScoredPairs pairs_;                   // while it is small
  std::unique_ptr<ScoredTable> table_;  // from then on
};

}  // namespace weir::kv
