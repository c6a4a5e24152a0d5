#include "kv/store/stream.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>
#include <vector>

namespace weir::kv {

void Stream::append(StreamId id, StreamWords words, StreamNodeLimits limits) {
  std::size_t bytes = 0;
  for (const std::string_view word : words) bytes += word.size();
  auto at = nodes_.empty() ? nodes_.end() : std::prev(nodes_.end());
  if (at == nodes_.end() || !at->second.takes(bytes, limits)) {
    if (at != nodes_.end()) at->second.shrink_to_fit();
    at = nodes_.emplace_hint(nodes_.end(), id, StreamNode(words));
  }
  at->second.append(at->first, id, words);
  if (length_++ == 0) first_id_ = id;
  last_id = id;
  ++entries_added;
}

Stream::Nodes::const_iterator Stream::node_of(StreamId id) const {
  auto at = nodes_.upper_bound(id);
  return at == nodes_.begin() ? at : std::prev(at);
}

bool Stream::erase(StreamId id) {
  StreamCursor cursor(*this, id, id, StreamCursor::Order::forward);
  if (!cursor.next()) return false;
  const auto at = nodes_.find(node_of(id)->first);
  StreamNode& node = at->second;
  if (node.live() == 1) {
    nodes_.erase(at);
  } else {
    node.flag_deleted(cursor.entry());
    node.count_deleted(1);
  }
  --length_;
  max_deleted = std::max(max_deleted, id);
  if (id == first_id_) find_first();
  return true;
}

bool Stream::contains(StreamId id) const {
  return StreamCursor(*this, id, id, StreamCursor::Order::forward).next();
}

StreamId Stream::newest() const {
  StreamCursor cursor(*this, {}, StreamId::highest(), StreamCursor::Order::backward);
  return cursor.next() ? cursor.id() : StreamId{};
}

void Stream::find_first() {
  StreamCursor cursor(*this, {}, StreamId::highest(), StreamCursor::Order::forward);
  first_id_ = cursor.next() ? cursor.id() : StreamId{};
}

std::size_t Stream::count(StreamId first, StreamId last, std::size_t most) const {
  std::size_t found = 0;
  for (auto at = node_of(first); at != nodes_.end() && at->first <= last && found < most;) {
    const auto following = std::next(at);
    // Whole nodes are counted by what they say of themselves.
    const bool to_end = following == nodes_.end() ? last >= last_id : last >= following->first;
    if (at->first >= first && to_end) {
      found += at->second.live();
    } else {
      const StreamId base = at->first;
      for (auto entry = at->second.first(base); entry && entry->id <= last && found < most;
           entry = at->second.after(base, *entry)) {
        found += !entry->deleted && entry->id >= first ? 1 : 0;
      }
    }
    at = following;
  }
  return std::min(found, most);
}

std::uint64_t Stream::trim(const StreamTrim& trim) {
  using Down = StreamTrim::Down;
  if (trim.down == Down::nothing) return 0;
  std::uint64_t taken = 0;
  while (!nodes_.empty()) {
    if (trim.down == Down::to_length && length_ <= trim.length) break;
    const auto at = nodes_.begin();
    const StreamNode& node = at->second;
    const std::size_t live = node.live();
    if (trim.limit != 0 && taken + live > trim.limit) break;
    const bool whole =
        trim.down == Down::to_length ? length_ - live >= trim.length : node.last(at->first)->id < trim.id;
    if (!whole) {
      if (!trim.whole_nodes) taken += trim_within(at, trim);
      break;
    }
    nodes_.erase(at);
    length_ -= live;
    taken += live;
  }
  if (taken != 0) find_first();
  return taken;
}

// Of a node whose last entry stays, deleted or not.
std::uint64_t Stream::trim_within(Nodes::iterator at, const StreamTrim& trim) {
  StreamNode& node = at->second;
  std::size_t taken = 0;
  for (auto entry = node.first(at->first); entry; entry = node.after(at->first, *entry)) {
    const bool stays =
        trim.down == StreamTrim::Down::to_length ? length_ - taken <= trim.length : entry->id >= trim.id;
    if (stays) break;
    if (entry->deleted) continue;
    node.flag_deleted(*entry);
    ++taken;
  }
  length_ -= taken;
  if (taken != 0) node.count_deleted(taken);
  return taken;
}

bool Stream::adopt_node(StreamId base, std::string_view bytes) {
  StreamId last;
  std::optional<StreamNode> node = StreamNode::adopt(base, bytes, last);
  if (!node) return false;
  if (!nodes_.empty()) {
    const auto& [before_base, before] = *std::prev(nodes_.end());
    if (before.last(before_base)->id >= base) return false;
  }
  length_ += node->live();
  last_id = std::max(last_id, last);
  nodes_.emplace_hint(nodes_.end(), base, std::move(*node));
  if (first_id_.is_zero()) find_first();
  return true;
}

StreamGroup* Stream::add_group(std::string_view name, StreamId last, std::int64_t entries_read) {
  if (find_group(name) != nullptr) return nullptr;
  auto group = std::make_unique<StreamGroup>(last, entries_read);
  return groups_.emplace(std::string(name), std::move(group)).first->second.get();
}

void Stream::remove_group(std::string_view name) {
  const auto it = groups_.find(name);
  if (it != groups_.end()) groups_.erase(it);
}

std::int64_t Stream::estimate_read(StreamId id) const {
  const auto added = static_cast<std::int64_t>(entries_added);
  const auto length = static_cast<std::int64_t>(length_);
  if (entries_added == 0) return 0;
  if (length_ == 0 && id <= last_id) return added;
  // Entries between the id and the newest one may have been deleted.
  if (!id.is_zero() && id < max_deleted) return StreamGroup::unknown;
  if (id == last_id) return added;
  if (id > last_id) return StreamGroup::unknown;
  if (max_deleted.is_zero() || max_deleted < first_id_) {
    if (id < first_id_) return added - length;
    if (id == first_id_) return added - length + 1;
  }
  return StreamGroup::unknown;
}

bool Stream::has_deleted_from(StreamId from) const {
  return length_ != 0 && !max_deleted.is_zero() && from <= max_deleted;
}

std::optional<std::int64_t> Stream::lag(const StreamGroup& group) const {
  if (length_ == 0) return 0;
  // It has got none of those left, and none of those was deleted.
  if (group.last_id < first_id_ && max_deleted < first_id_) return static_cast<std::int64_t>(length_);
  const auto added = static_cast<std::int64_t>(entries_added);
  if (group.entries_read != StreamGroup::unknown && !has_deleted_from(group.last_id)) {
    return added - group.entries_read;
  }
  const std::int64_t read = estimate_read(group.last_id);
  if (read == StreamGroup::unknown) return std::nullopt;
  return added - read;
}

namespace {

// How many bytes two ids have in common from the start, written as big endian numbers.
std::size_t bytes_in_common(StreamId a, StreamId b) {
  const std::uint64_t high = a.ms ^ b.ms;
  if (high != 0) return static_cast<std::size_t>(std::countl_zero(high)) / 8;
  return sizeof a.ms + static_cast<std::size_t>(std::countl_zero(a.seq ^ b.seq)) / 8;
}

}  // namespace

// A leaf for each key, a branch wherever keys part, and a piece of path wherever at least a byte lies between
// two of these.
std::size_t Stream::radix_tree_nodes() const {
  constexpr std::size_t key_bytes = 16;
  if (nodes_.empty()) return 1;
  std::size_t count = 0;
  std::vector<std::size_t> branches;  // on the path to the present key: how deep, in bytes
  const auto add_path = [&](std::size_t above, std::size_t below) { count += below > above ? 1 : 0; };
  const auto leave = [&](std::size_t from, std::size_t depth) {
    // Branches deeper than `depth` are complete; each is reached over a path.
    std::size_t lowest = from;
    while (!branches.empty() && branches.back() > depth) {
      const std::size_t branch = branches.back();
      branches.pop_back();
      add_path(branch + 1, lowest);
      ++count;
      lowest = branch;
    }
    return lowest;
  };
  StreamId before = nodes_.begin()->first;
  ++count;  // its leaf
  for (auto at = std::next(nodes_.begin()); at != nodes_.end(); ++at) {
    const std::size_t parts_at = bytes_in_common(before, at->first);
    const std::size_t lowest = leave(key_bytes, parts_at);
    if (branches.empty() || branches.back() != parts_at) branches.push_back(parts_at);
    add_path(parts_at + 1, lowest);
    ++count;
    before = at->first;
  }
  const std::size_t top = leave(key_bytes, 0);
  if (!branches.empty()) {
    add_path(branches.back() + 1, top);
    return count + 1;  // the root is a branch
  }
  add_path(0, top);
  return count;
}

std::unique_ptr<Stream> Stream::copy() const {
  auto other = std::make_unique<Stream>();
  other->last_id = last_id;
  other->max_deleted = max_deleted;
  other->entries_added = entries_added;
  other->length_ = length_;
  other->first_id_ = first_id_;
  for (const auto& [base, node] : nodes_) {
    other->nodes_.emplace_hint(other->nodes_.end(), base, StreamNode(node));
  }
  for (const auto& [name, group] : groups_) other->groups_.emplace(name, group->copy());
  return other;
}

std::size_t Stream::heap_size() const {
  std::size_t size = nodes_.size() * sizeof(Nodes::value_type);
  for (const auto& [base, node] : nodes_) size += node.heap_size();
  for (const auto& [name, group] : groups_)
    size += sizeof(Groups::value_type) + name.size() + group->heap_size();
  return size;
}

std::size_t Stream::pieces() const {
  std::size_t pieces = nodes_.size();
  for (const auto& [name, group] : groups_) pieces += 1 + group->pending().size() + group->consumers().size();
  return pieces;
}

bool Stream::free_some(std::size_t most) {
  if (!nodes_.empty()) {
    const std::size_t some = std::min(most, nodes_.size());
    nodes_.erase(nodes_.begin(), std::next(nodes_.begin(), static_cast<std::ptrdiff_t>(some)));
    return true;
  }
  if (!groups_.empty() && !groups_.begin()->second->free_some(most)) groups_.erase(groups_.begin());
  return !groups_.empty();
}

StreamCursor::StreamCursor(const Stream& stream, StreamId first, StreamId last, Order order)
    : stream_(stream),
      first_(first),
      last_(last),
      order_(order),
      at_(stream.node_of(order == Order::forward ? first : last)) {}

bool StreamCursor::next() {
  if (first_ > last_) return false;
  while (order_ == Order::forward ? step() : step_back()) {
    const StreamId id = entry_->id;
    if (order_ == Order::forward ? id > last_ : id < first_) return false;
    if (!entry_->deleted && id >= first_ && id <= last_) return true;
  }
  return false;
}

bool StreamCursor::step() {
  if (at_ == stream_.nodes_.end()) return false;
  entry_ = begun_ ? at_->second.after(at_->first, *entry_) : at_->second.first(at_->first);
  begun_ = true;
  if (entry_) return true;
  if (++at_ == stream_.nodes_.end()) return false;
  entry_ = at_->second.first(at_->first);
  return entry_.has_value();
}

bool StreamCursor::step_back() {
  if (at_ == stream_.nodes_.end()) return false;
  entry_ = begun_ ? at_->second.before(at_->first, *entry_) : at_->second.last(at_->first);
  begun_ = true;
  if (entry_) return true;
  if (at_ == stream_.nodes_.begin()) {
    at_ = stream_.nodes_.end();
    return false;
  }
  --at_;
  entry_ = at_->second.last(at_->first);
  return entry_.has_value();
}

}  // namespace weir::kv
