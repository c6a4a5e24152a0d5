// Shared by the commands on lists, hashes, sets and sorted sets: finding a key's collection, creating it if
// needed, and removing the key when its collection is empty.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/store/hash.hpp"
#include "kv/store/list.hpp"
#include "kv/store/set.hpp"
#include "kv/store/zset.hpp"

namespace weir::kv {

template <class Collection>
struct CollectionType;
template <>
struct CollectionType<List> {
  static constexpr Type type = Type::list;
  static List& of(Value& value) { return value.list(); }
};
template <>
struct CollectionType<Set> {
  static constexpr Type type = Type::set;
  static Set& of(Value& value) { return value.set(); }
};
template <>
struct CollectionType<Hash> {
  static constexpr Type type = Type::hash;
  static Hash& of(Value& value) { return value.hash(); }
};
template <>
struct CollectionType<SortedSet> {
  static constexpr Type type = Type::zset;
  static SortedSet& of(Value& value) { return value.zset(); }
};

// Sets `found` to the collection in `record`; null if there is no record. Replies WRONGTYPE and returns false
// if the record has another type.
template <class Collection>
bool collection_of(const Call& call, Record* record, Collection*& found) {
  found = nullptr;
  if (!call.typed(record, CollectionType<Collection>::type)) return false;
  if (record != nullptr) found = &CollectionType<Collection>::of(record->value);
  return true;
}
// The collection of a key; counts a hit or a miss.
template <class Collection>
bool read_as(const Call& call, std::string_view key, Collection*& found) {
  return collection_of(call, call.read(key), found);
}
// Likewise, without counting.
template <class Collection>
bool write_as(const Call& call, std::string_view key, Collection*& found) {
  return collection_of(call, call.write(key), found);
}

// For commands that wait: as write_as(), but a waiting command that is tried again keeps waiting if
// the key has changed its type.
template <class Collection>
bool blocked_read(const Call& call, std::string_view key, Collection*& found) {
  Record* record = call.write(key);
  found = nullptr;
  if (call.retried && record != nullptr && record->value.type() != CollectionType<Collection>::type)
    return true;
  return collection_of(call, record, found);
}
std::vector<std::string> key_names(Arguments keys);

// Makes a new empty collection at a key that has no record.
List& make_list(const Call& call, std::string_view key);
Set& make_set(const Call& call, std::string_view key);
Hash& make_hash(const Call& call, std::string_view key);
SortedSet& make_zset(const Call& call, std::string_view key);

// Replaces whatever the key held by a whole collection; an empty one deletes the
// key. Returns its size.
std::size_t store_collection(const Call& call, std::string_view key, Set&& set);
std::size_t store_collection(const Call& call, std::string_view key, SortedSet&& zset);

// A word that is to be stored: what was received into its own block is kept without a copy.
inline GivenText given(const Argument& word) { return {word.text, word.block}; }

// Answers with a text of a collection; a large one is not copied.
inline void reply_text(const Call& call, const StoredText& text) {
  text.string() != nullptr ? call.reply.bulk(*text.string()) : call.reply.bulk(text.view());
}

SmallLimits hash_limits(const Call& call);
SmallLimits zset_limits(const Call& call);
SetLimits set_limits(const Call& call);
NodeLimit node_limit(const Call& call);

// Call after a change: deletes the key if its collection is empty, and notifies waiting and watching clients.
template <class Collection>
void settle(const Call& call, std::string_view key, const Collection& collection) {
  if (collection.size() == 0) {
    call.erase(key);
  } else {
    call.changed(key);
  }
}
// Likewise, with another event than the usual one of the command.
template <class Collection>
void settle(const Call& call, std::string_view key, const Collection& collection, KeyEvent event) {
  if (collection.size() == 0) {
    call.erase(key, event);
  } else {
    call.changed(key, event);
  }
}

// Parses "numkeys key [key ...]" from argument `at`: sets `keys` and moves `at` past them. Replies
// with the error if it is wrong.
bool counted_keys(const Call& call, std::size_t& at, Arguments& keys);

// A count that must not be negative, as in LPOP and SPOP.
bool positive(const Call& call, std::size_t at, std::int64_t& value,
              std::string_view error = "ERR value is out of range, must be positive");

// Negative indices count from the end; clamps [start, stop] to the size. Returns false
// if the range is empty.
bool clamp_range(std::int64_t& start, std::int64_t& stop, std::size_t size);

// A blocking command's timeout in seconds; replies with the error if it is wrong.
bool timeout(const Call& call, std::size_t at, std::int64_t& ms);

}  // namespace weir::kv
