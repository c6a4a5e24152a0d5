// A stream: entries in the order of their ids, each some names and values, and the groups that read it.
//
// Entries are packed into nodes (stream_node.hpp), found by the id of the first entry that was put there.
// Taking the oldest away mostly frees whole nodes; an entry taken out of the middle is marked until its node
// is empty.
//
// Invariants: nodes do not overlap; no entry is above last_id. Threading: none.
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "kv/store/stream_group.hpp"
#include "kv/store/stream_id.hpp"
#include "kv/store/stream_node.hpp"

namespace weir::kv {

// What XTRIM and XADD take away from the front.
struct StreamTrim {
  enum class Down : std::uint8_t { nothing, to_length, to_id };

  Down down = Down::nothing;
  bool whole_nodes = false;  // rather leave some than split a node
  std::uint64_t length = 0;
  StreamId id;              // the lowest that stays
  std::uint64_t limit = 0;  // of entries taken; 0: none
};

class Stream {
 public:
  using Nodes = absl::btree_map<StreamId, StreamNode>;
  using Groups = absl::btree_map<std::string, std::unique_ptr<StreamGroup>, std::less<>>;

  StreamId last_id;      // the highest ever
  StreamId max_deleted;  // the highest that was deleted one by one
  std::uint64_t entries_added = 0;

  std::size_t size() const { return length_; }
  StreamId first_id() const { return first_id_; }  // zero: it is empty
  const Nodes& nodes() const { return nodes_; }

  // `id` must be above last_id.
  void append(StreamId id, StreamWords words, StreamNodeLimits limits);
  bool erase(StreamId id);
  bool contains(StreamId id) const;
  std::uint64_t trim(const StreamTrim& trim);
  // Of the newest entry there is; zero if there is none.
  StreamId newest() const;
  // How many are in [first, last]; no more than `most` are counted.
  std::size_t count(StreamId first, StreamId last, std::size_t most) const;

  // Puts a node behind the others: bytes as StreamNode::bytes() gives them, from outside. False: it does not
  // go there.
  bool adopt_node(StreamId base, std::string_view bytes);

  const Groups& groups() const { return groups_; }
  StreamGroup* find_group(std::string_view name) const {
    const auto it = groups_.find(name);
    return it == groups_.end() ? nullptr : it->second.get();
  }
  // Null: there is one of that name.
  StreamGroup* add_group(std::string_view name, StreamId last, std::int64_t entries_read);
  void remove_group(std::string_view name);

  // How many entries ever added come up to `id`; StreamGroup::unknown where deleted ones may be among them.
  std::int64_t estimate_read(StreamId id) const;
  // Whether an entry was deleted in [from, the end].
  bool has_deleted_from(StreamId from) const;
  // How many entries the group has not got yet; nothing where that is unknown.
  std::optional<std::int64_t> lag(const StreamGroup& group) const;

  // How many nodes Redis's radix tree has for these, which XINFO tells.
  std::size_t radix_tree_nodes() const;

  std::unique_ptr<Stream> copy() const;
  std::size_t heap_size() const;
  // What takes time to free.
  std::size_t pieces() const;
  // As Value::free_some().
  bool free_some(std::size_t most);

 private:
  friend class StreamCursor;

  // The node where `id` is if it is anywhere.
  Nodes::const_iterator node_of(StreamId id) const;
  std::uint64_t trim_within(Nodes::iterator at, const StreamTrim& trim);
  void find_first();

  Nodes nodes_;
  std::size_t length_ = 0;
  StreamId first_id_;
  Groups groups_;
};

// Walks the entries in [first, last], forward or backward. The stream must not change meanwhile.
class StreamCursor {
 public:
  enum class Order : std::uint8_t { forward, backward };

  StreamCursor(const Stream& stream, StreamId first, StreamId last, Order order);

  // On to the next; false: there is none. The cursor begins in front of the first.
  bool next();
  StreamId id() const { return entry_->id; }
  std::size_t fields() const { return entry_->fields; }
  // visit(name, value), as StreamNode::for_each_pair().
  template <class Visit>
  void for_each_pair(Visit visit) const {
    at_->second.for_each_pair(*entry_, visit);
  }
  const StreamNode::Entry& entry() const { return *entry_; }

 private:
  bool step();
  bool step_back();

  const Stream& stream_;
  StreamId first_, last_;
  Order order_;
  Stream::Nodes::const_iterator at_;
  std::optional<StreamNode::Entry> entry_;
  bool begun_ = false;
};

}  // namespace weir::kv
