// Shared by the commands on streams: ids and intervals as clients write them, finding a group, and
// writing entries into replies.
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

// Makes a new empty stream at a key that has no record.
Stream& make_stream(const Call& call, std::string_view key);

// Parses "ms-seq", or "ms" alone, which gets `missing_seq`. nullopt: not an id. It does not accept "-" and
// "+", the lowest and the highest id, nor "ms-*".
std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq = 0);

// If the words are wrong these reply to the client.
bool stream_id(const Call& call, std::string_view text, StreamId& id, std::uint64_t missing_seq = 0);
void wrong_stream_id(const Call& call);

// The ends of an interval: "-", "+", an id, or "(" and an id that is excluded.
struct StreamInterval {
  StreamId first, last;
};
bool stream_interval_start(const Call& call, std::string_view text, StreamId& first);
bool stream_interval_end(const Call& call, std::string_view text, StreamId& last);

void reply_stream_id(Reply& reply, StreamId id);
// Writes the entry at `cursor`: its id, field names and values.
void reply_stream_entry(Reply& reply, const StreamCursor& cursor);
// Writes an array of at most `most` entries.
void reply_stream_range(Reply& reply, const Stream& stream, StreamInterval interval, std::size_t most,
                        StreamCursor::Order order = StreamCursor::Order::forward);
// Writes one entry; false: no entry has that id, and nothing was written.
bool reply_stream_entry_of(Reply& reply, const Stream& stream, StreamId id);

// For replies without a limit.
inline constexpr std::size_t all_entries = static_cast<std::size_t>(-1);
// A COUNT of 0 or less means no limit.
inline std::size_t stream_count(std::int64_t count) {
  return count <= 0 ? all_entries : static_cast<std::size_t>(count);
}

// A group changed. That counts as a change of data, but not as a change of the key for WATCH or for
// clients that wait for entries.
void stream_group_changed(const Call& call);

// Likewise, and also replays the change: the entry's pending state in the group; that the entry is no longer
// pending; or how far the group has read.
struct GroupName {
  std::string_view key, group;
};
void replay_pending(const Call& call, const GroupName& name, StreamGroup& group, StreamId id);
void replay_taken_back(const Call& call, const GroupName& name, StreamId id);
void replay_progress(const Call& call, const GroupName& name, const StreamGroup& group);

// Finds a key's group; null: no such key or group. False: the key has another type, and the error is sent.
bool stream_group_of(const Call& call, std::string_view key, std::string_view name, Stream*& stream,
                     StreamGroup*& group);

}  // namespace weir::kv
