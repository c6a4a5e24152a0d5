#include "kv/store/list.hpp"

#include <utility>

namespace weir::kv {

List::Where List::find(std::size_t index) const {
  if (nodes_ == nullptr) return {0, index};
  const auto& row = nodes_->row;
  if (index < nodes_->elements / 2) {
    std::size_t node = 0;
    while (index >= row[node].size()) index -= row[node++].size();
    return {node, index};
  }
  std::size_t behind = nodes_->elements - index;  // elements from the one there to the end
  std::size_t node = row.size() - 1;
  while (behind > row[node].size()) behind -= row[node--].size();
  return {node, row[node].size() - behind};
}

StoredText List::at(std::size_t index) const {
  if (nodes_ == nullptr) return only_.at(index);
  const auto [node, place] = find(index);
  return nodes_->row[node].at(place);
}

List::Nodes& List::make_nodes() {
  if (nodes_ == nullptr) {
    nodes_ = std::make_unique<Nodes>();
    nodes_->elements = only_.size();
    if (only_.size() != 0) nodes_->row.push_back(std::exchange(only_, ListNode()));
  }
  return *nodes_;
}

void List::add_at_end(End end, ListNode node) {
  if (empty() && nodes_ == nullptr) {
    only_ = std::move(node);
    return;
  }
  Nodes& nodes = make_nodes();
  nodes.elements += node.size();
  end == End::left ? nodes.row.push_front(std::move(node)) : nodes.row.push_back(std::move(node));
}

void List::push(End end, const GivenText& text, NodeLimit limit) {
  if (!ListNode::fits(text.text, limit)) return add_at_end(end, ListNode(text));
  const bool has_nodes = nodes_ != nullptr && !nodes_->row.empty();
  ListNode& node = !has_nodes ? only_ : end == End::left ? nodes_->row.front() : nodes_->row.back();
  if ((has_nodes || nodes_ == nullptr) && node.takes(text.text, limit)) {
    node.push(end, text.text);
    if (has_nodes) ++nodes_->elements;
    return;
  }
  ListNode fresh;
  fresh.push(end, text.text);
  add_at_end(end, std::move(fresh));
}

// After elements were taken from it.
void List::drop_empty(std::size_t node) {
  auto& row = nodes_->row;
  if (row[node].size() == 0) row.erase(row.begin() + static_cast<std::ptrdiff_t>(node));
}

// A list that has become short is one node again. Not at the limit, so that a list that grows and shrinks
// there does not change its form each time.
void List::join(NodeLimit limit) {
  if (nodes_->row.size() != 1 || !nodes_->row.front().is_half_empty(limit)) return;
  only_ = std::move(nodes_->row.front());
  nodes_.reset();
}

void List::pop(End end, NodeLimit limit) {
  if (nodes_ == nullptr) return only_.pop(end);
  const std::size_t node = end == End::left ? 0 : nodes_->row.size() - 1;
  nodes_->row[node].pop(end);
  --nodes_->elements;
  drop_empty(node);
  join(limit);
}

void List::insert(std::size_t index, const GivenText& text, NodeLimit limit) {
  if (index == 0) return push(End::left, text, limit);
  if (index == size()) return push(End::right, text, limit);
  const bool fits = ListNode::fits(text.text, limit);
  if (nodes_ == nullptr && fits && only_.takes(text.text, limit)) return only_.insert(index, text.text);
  Nodes& nodes = make_nodes();
  auto& row = nodes.row;
  auto [node, place] = find(index);
  ++nodes.elements;
  if (fits && row[node].takes(text.text, limit)) return row[node].insert(place, text.text);
  if (place != 0) {
    ListNode behind = row[node].split(place);
    ++node;
    row.insert(row.begin() + static_cast<std::ptrdiff_t>(node), std::move(behind));
  }
  // It goes between two nodes.
  if (fits && row[node - 1].takes(text.text, limit)) return row[node - 1].push(End::right, text.text);
  if (fits && row[node].takes(text.text, limit)) return row[node].push(End::left, text.text);
  ListNode fresh;
  if (fits) {
    fresh.push(End::right, text.text);
  } else {
    fresh = ListNode(text);
  }
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(node), std::move(fresh));
}

void List::set(std::size_t index, const GivenText& text, NodeLimit limit) {
  erase(index, index + 1, limit);
  insert(index, text, limit);
}

void List::erase(std::size_t first, std::size_t end, NodeLimit limit) {
  if (nodes_ == nullptr) return only_.erase(first, end);
  for (std::size_t left = end - first; left > 0;) {
    const auto [node, index] = find(first);
    ListNode& from = nodes_->row[node];
    const std::size_t some = std::min(left, from.size() - index);
    from.erase(index, index + some);
    nodes_->elements -= some;
    left -= some;
    drop_empty(node);
  }
  join(limit);
}

std::size_t List::remove(std::string_view text, std::size_t most, Walk walk, NodeLimit limit) {
  if (nodes_ == nullptr) return only_.remove(text, most, walk);
  auto& row = nodes_->row;
  std::size_t removed = 0;
  for (std::size_t i = 0; i < row.size() && removed < most; ++i) {
    ListNode& node = row[walk == Walk::forward ? i : row.size() - 1 - i];
    removed += node.remove(text, most - removed, walk);
  }
  if (removed == 0) return 0;
  nodes_->elements -= removed;
  std::deque<ListNode> left;
  for (ListNode& node : row) {
    if (node.size() == 0 || (!left.empty() && left.back().absorb(node, limit))) continue;
    left.push_back(std::move(node));
  }
  row = std::move(left);
  join(limit);
  return removed;
}

List List::copy() const {
  List other;
  if (nodes_ == nullptr) {
    other.only_ = only_.copy();
    return other;
  }
  Nodes& nodes = other.make_nodes();
  for (const ListNode& node : nodes_->row) nodes.row.push_back(node.copy());
  nodes.elements = nodes_->elements;
  return other;
}

std::size_t List::heap_size() const {
  if (nodes_ == nullptr) return only_.heap_size();
  std::size_t size = sizeof(Nodes);
  for (const ListNode& node : nodes_->row) size += sizeof(ListNode) + node.heap_size();
  return size;
}

bool List::free_some(std::size_t most) {
  if (nodes_ == nullptr) return false;
  auto& row = nodes_->row;
  for (std::size_t freed = 0; !row.empty() && freed < most; row.pop_front()) freed += row.front().size();
  return !row.empty();
}

}  // namespace weir::kv
