// A list: elements in order, cheap at both ends. A short one is one node of packed elements, a longer one a
// row of nodes (Redis's quicklist).
//
// How much is packed together is a setting, which each change gets. Nodes that were made under another limit
// stay as they are.
//
// An element is found from the nearer end, by the nodes' sizes: nodes that are passed are counted, not read.
//
// It lies in the Value that holds it (kv/store/value.hpp). What it shows is valid until it changes; texts
// given to it must not lie in it. Threading: none.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>

#include "kv/store/list_node.hpp"

namespace weir::kv {

class List {
 public:
  std::size_t size() const { return nodes_ == nullptr ? only_.size() : nodes_->elements; }
  bool empty() const { return size() == 0; }

  StoredText at(std::size_t index) const;
  StoredText at(End end) const { return at(end == End::left ? 0 : size() - 1); }

  // Whether all elements are packed together.
  bool one_pack() const { return nodes_ == nullptr && !only_.is_alone(); }

  void push(End end, const GivenText& text, NodeLimit limit = {});
  void pop(End end, NodeLimit limit = {});
  void insert(std::size_t index, const GivenText& text, NodeLimit limit = {});
  void set(std::size_t index, const GivenText& text, NodeLimit limit = {});
  // Elements from `first` to before `end`.
  void erase(std::size_t first, std::size_t end, NodeLimit limit = {});
  // Equal elements, at most that many from one end on; returns how many there were.
  std::size_t remove(std::string_view text, std::size_t most, Walk walk, NodeLimit limit = {});

  // Elements from `first` to before `end`: visit(const StoredText&); stops when it returns false.
  template <class Visit>
  void for_each(std::size_t first, std::size_t end, Walk walk, Visit visit) const {
    if (first == end) return;
    if (nodes_ == nullptr) {
      only_.for_each(first, end, walk, visit);
      return;
    }
    const bool forward = walk == Walk::forward;
    Where where = find(forward ? first : end - 1);
    for (std::size_t left = end - first; left > 0; forward ? ++where.node : --where.node) {
      const ListNode& node = nodes_->row[where.node];
      if (left != end - first) where.index = forward ? 0 : node.size() - 1;
      const std::size_t some = std::min(left, forward ? node.size() - where.index : where.index + 1);
      const std::size_t from = forward ? where.index : where.index + 1 - some;
      if (!node.for_each(from, from + some, walk, visit)) return;
      left -= some;
    }
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for_each(0, size(), Walk::forward, visit);
  }

  List copy() const;
  std::size_t heap_size() const;
  // As Value::free_some().
  bool free_some(std::size_t most);

 private:
  struct Nodes {
    std::deque<ListNode> row;  // none is empty
    std::size_t elements = 0;
  };
  struct Where {
    std::size_t node;
    std::size_t index;  // in the node
  };

  Where find(std::size_t index) const;
  Nodes& make_nodes();
  void drop_empty(std::size_t node);
  void join(NodeLimit limit);
  void add_at_end(End end, ListNode node);

  ListNode only_;  // all elements, while there are no
  std::unique_ptr<Nodes> nodes_;
};

}  // namespace weir::kv
