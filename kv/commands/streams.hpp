// What the commands on streams share: ids and intervals as clients write them, finding a group, and writing
// entries into replies.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "kv/commands/collection.hpp"
#include "kv/store/stream.hpp"

namespace weir::kv {

template <>
struct CollectionType<Stream> {
  static constexpr Type type = Type::stream;
  static Stream& of(const Value& value) { return value.stream(); }
};

// A new empty stream at a key that has no record.
Stream& make_stream(const Call& call, std::string_view key);

// "ms-seq", or "ms" alone, which gets `missing_seq`. Nothing: it is no id. These forms are not in it: "-" and
// "+" for the lowest and the highest, "ms-*".
std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq = 0);

// They answer the client when the words are wrong.
bool stream_id(const Call& call, std::string_view text, StreamId& id, std::uint64_t missing_seq = 0);
void wrong_stream_id(const Call& call);

// The ends of an interval: "-", "+", an id, "(" and an id that is not in it.
struct StreamInterval {
  StreamId first, last;
};
bool stream_interval_start(const Call& call, std::string_view text, StreamId& first);
bool stream_interval_end(const Call& call, std::string_view text, StreamId& last);

void reply_stream_id(Reply& reply, StreamId id);
// Where `cursor` is: its id, its names and values.
void reply_stream_entry(Reply& reply, const StreamCursor& cursor);
// An array of at most `most` entries.
void reply_stream_range(Reply& reply, const Stream& stream, StreamInterval interval, std::size_t most,
                        StreamCursor::Order order = StreamCursor::Order::forward);
// One entry; false: there is none of that id, and nothing was written.
bool reply_stream_entry_of(Reply& reply, const Stream& stream, StreamId id);

// The same without a limit.
inline constexpr std::size_t all_entries = static_cast<std::size_t>(-1);
// A COUNT of 0, or below, is none.
inline std::size_t stream_count(std::int64_t count) {
  return count <= 0 ? all_entries : static_cast<std::size_t>(count);
}

// Something in a group changed: it counts as a change of data, but not of the key for WATCH, nor for those
// who wait for entries.
void stream_group_changed(const Call& call);

// The same, and what changed as words that can be replayed: an entry is pending as the group says now; it is
// no longer pending; the group has read so far.
struct GroupName {
  std::string_view key, group;
};
void replay_pending(const Call& call, const GroupName& name, StreamGroup& group, StreamId id);
void replay_taken_back(const Call& call, const GroupName& name, StreamId id);
void replay_progress(const Call& call, const GroupName& name, const StreamGroup& group);

// A key's group; null: no such key, or no such group. False: another type, and it is answered.
bool stream_group_of(const Call& call, std::string_view key, std::string_view name, Stream*& stream,
                     StreamGroup*& group);

}  // namespace weir::kv
