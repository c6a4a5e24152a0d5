// The places of a bounded queue that anybody may enter: which one is given up when the queue is full.
//
// Asking costs a stranger nothing, so a source must not keep the others out by asking more often. The place
// that is given up belongs to the source that has the most; among equals, to the one that has waited
// longest. Whether a newcomer may take it depends on the queue: `taken_by` gives up a place only to a source
// that has fewer even with the newcomer, so that two sources never push each other out in turn.
//
// Of a source's places, one that has never moved on leaves first, the oldest of them, and after those the one
// that moved on longest ago. But of places that moved once and then stand still there may be as many as a
// source likes, and its newcomers, which have not moved yet, would leave as soon as they came. So once those
// that moved are the greater part, the oldest of these leaves: each kind keeps half of what the source has.
// The user bounds how often a place can move on, and how long it may stay in all.
//
// Not thread-safe. Every function takes time in proportion to the logarithm of the number of places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weir::waiting {

// `Item` is what has the place.
template <class Source, class Item>
class Shares {
 public:
  using Number = std::uint64_t;  // of a place; in order of arrival, never 0
  using Place = std::pair<const Number, Item>;

  Number enter(const Source& source, Item item) {
    const auto at = sources_.try_emplace(source).first;
    const Ranked ranked(*this, at);
    const Number number = ++clock_;
    at->second.waiting.emplace(number, Place(number, std::move(item)));
    try {
      by_number_.emplace(number, At{at, number, false});
    } catch (...) {
      at->second.waiting.erase(number);
      throw;
    }
    return number;
  }
  // It moved on, and is the last of its source to leave among those that have. Nothing, if it has left.
  void move_on(Number number) {
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return;
    At& at = found->second;
    const Ranked ranked(*this, at.source);
    auto node = at.row().extract(at.since);
    node.key() = ++clock_;
    at.since = clock_;
    at.moved = true;
    at.row().insert(std::move(node));
  }
  // Nothing, if it has left.
  std::optional<Item> leave(Number number) {
    const auto found = by_number_.find(number);
    if (found == by_number_.end()) return std::nullopt;
    At at = found->second;
    by_number_.erase(found);
    const Ranked ranked(*this, at.source);
    return std::move(at.row().extract(at.since).mapped().second);
  }

  // nullptr: it has left.
  const Item* find(Number number) const {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr
                                     : &found->second.row().find(found->second.since)->second.second;
  }
  // The place to give up first. nullptr: there is none.
  const Place* first_to_leave() const {
    return ranked_.empty() ? nullptr : &(*ranked_.rbegin())->second.first_to_leave()->second;
  }
  // The place to give up for a newcomer from there. nullptr: no source has more than it would have.
  const Place* taken_by(const Source& newcomer) const {
    return ranked_.empty() || (*ranked_.rbegin())->second.size() <= held_by(newcomer) + 1 ? nullptr
                                                                                          : first_to_leave();
  }
  std::size_t held_by(const Source& source) const {
    const auto at = sources_.find(source);
    return at == sources_.end() ? 0 : at->second.size();
  }
  // The one that entered first, of all sources. nullptr: no place is taken.
  const Place* oldest() const {
    if (by_number_.empty()) return nullptr;
    const At& at = by_number_.begin()->second;
    return &at.row().find(at.since)->second;
  }
  std::size_t size() const { return by_number_.size(); }

 private:
  using Row = std::map<Number, Place>;  // by when it last moved, or else entered
  struct Places {
    Row waiting, moved;
    std::size_t size() const { return waiting.size() + moved.size(); }
    typename Row::const_iterator first_to_leave() const {
      return (waiting.size() >= moved.size() ? waiting : moved).begin();
    }
  };
  using Sources = std::map<Source, Places>;
  struct At {
    typename Sources::iterator source;
    Number since;
    bool moved;
    Row& row() const { return moved ? source->second.moved : source->second.waiting; }
  };
  // The source that loses the next place comes last.
  struct Order {
    using Set = std::set<typename Sources::iterator, Order>;
    static std::pair<std::size_t, Number> rank(const typename Sources::const_iterator& source) {
      return {source->second.size(), ~source->second.first_to_leave()->first};
    }
    bool operator()(const typename Sources::const_iterator& a,
                    const typename Sources::const_iterator& b) const {
      return rank(a) < rank(b);
    }
  };
  // Takes a source out of the order while its places change. One without places is forgotten.
  class Ranked {
   public:
    Ranked(Shares& of, typename Sources::iterator source)
        : of_(of),
          source_(source),
          node_(source->second.size() == 0 ? made(source) : of.ranked_.extract(source)) {}
    ~Ranked() {
      if (source_->second.size() != 0)
        of_.ranked_.insert(std::move(node_));
      else
        of_.sources_.erase(source_);
    }
    Ranked(const Ranked&) = delete;
    Ranked& operator=(const Ranked&) = delete;

   private:
    // Memory may be missing only here, before anything has changed.
    static typename Order::Set::node_type made(typename Sources::iterator source) {
      typename Order::Set alone{source};
      return alone.extract(alone.begin());
    }

    Shares& of_;
    const typename Sources::iterator source_;
    typename Order::Set::node_type node_;
  };

  Sources sources_;
  typename Order::Set ranked_;
  std::map<Number, At> by_number_;
  Number clock_ = 0;
};

}  // namespace weir::waiting
