// Some consecutive entries of a stream, packed as Redis packs them:
//
//   live, deleted, fields, each field's name, 0        the first entry's names, which others share
//   flags, ms, seq, [fields], names and values, elements of this entry        once for each entry
//
// ms and seq count from the node's id, which its owner keeps (see Stream). An entry with the first one's
// names has a flag and only its values. A deleted one stays, with a flag, until the node goes. The last
// element says how many are in front of it, so that entries are found from behind.
//
// Functions that read trust the bytes; those from outside come through adopt(). Threading: none.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "kv/store/listpack.hpp"
#include "kv/store/stream_id.hpp"

namespace weir::kv {

// When a node is full; 0: no limit.
struct StreamNodeLimits {
  std::size_t bytes = 4096;
  std::size_t entries = 100;
};

// Names and values in turn.
using StreamWords = std::span<const std::string_view>;

class StreamNode {
 public:
  // More bytes than this are not put into one node.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  // An entry in a node, valid until the node changes.
  struct Entry {
    StreamId id;
    listpack::Place begin = nullptr;  // its flags
    listpack::Place body = nullptr;   // its first value, or its first name
    std::size_t fields = 0;
    bool shares_names = false;
    bool deleted = false;
  };

  // Empty, for an entry with these words.
  explicit StreamNode(StreamWords first);
  // Bytes from outside, which are copied; nothing if they are no node of that id. `last` is the id of its
  // last entry, deleted or not.
  static std::optional<StreamNode> adopt(StreamId base, std::string_view bytes, StreamId& last);
  StreamNode(const StreamNode& other) : pack_(other.bytes()) {}
  StreamNode(StreamNode&&) noexcept = default;
  StreamNode& operator=(StreamNode&&) noexcept = default;
  ~StreamNode() = default;

  std::size_t live() const { return static_cast<std::size_t>(listpack::integer(pack_.begin())); }
  std::size_t deleted() const {
    return static_cast<std::size_t>(listpack::integer(listpack::next(pack_.begin())));
  }
  std::string_view bytes() const { return pack_.view(); }
  std::size_t heap_size() const { return pack_.capacity(); }

  // Whether an entry of so many bytes still goes in here.
  bool takes(std::size_t bytes, StreamNodeLimits limits) const;
  void append(StreamId base, StreamId id, StreamWords words);
  void shrink_to_fit() { pack_.shrink_to_fit(); }
  // Nothing moves until the counts are set right.
  void flag_deleted(const Entry& entry);
  void count_deleted(std::size_t entries);

  // Deleted ones, too. `base` is the node's id.
  std::optional<Entry> first(StreamId base) const;
  std::optional<Entry> last(StreamId base) const;
  std::optional<Entry> after(StreamId base, const Entry& entry) const;
  std::optional<Entry> before(StreamId base, const Entry& entry) const;

  // visit(std::string_view name, std::string_view value); what they view is gone when it returns.
  template <class Visit>
  void for_each_pair(const Entry& entry, Visit visit) const {
    IntText name_room;
    IntText value_room;
    listpack::Place shared = names();
    listpack::Place at = entry.body;
    for (std::size_t i = 0; i < entry.fields; ++i) {
      listpack::Place& name_at = entry.shares_names ? shared : at;
      const std::string_view name = listpack::text(name_at, name_room);
      name_at = listpack::next(name_at);
      visit(name, listpack::text(at, value_room));
      at = listpack::next(at);
    }
  }

 private:
  explicit StreamNode(std::string_view bytes) : pack_(bytes) {}

  listpack::Place field_count() const { return listpack::skip(pack_.begin(), 2); }
  listpack::Place names() const { return listpack::next(field_count()); }
  listpack::Place behind_names() const;
  bool has_names(StreamWords words) const;
  Entry read(StreamId base, listpack::Place begin) const;
  static listpack::Place behind(const Entry& entry);

  Listpack pack_;
};

}  // namespace weir::kv
