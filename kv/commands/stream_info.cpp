// XINFO: figures about streams, their groups and consumers.
#include <algorithm>
#include <string>

#include "kv/call/call.hpp"
#include "kv/commands/help.hpp"
#include "kv/commands/streams.hpp"

namespace weir::kv {

namespace {

bool stream_of(const Call& call, Stream*& stream) {
  if (!read_as(call, call[2], stream)) return false;
  if (stream == nullptr) call.reply.error("ERR no such key");
  return stream != nullptr;
}

class MapReply {
 public:
  MapReply(Reply& reply, std::size_t pairs) : reply_(reply) { reply.map(pairs); }

  Reply& name(std::string_view text) {
    reply_.bulk(text);
    return reply_;
  }
  void text(std::string_view name, std::string_view value) { this->name(name).bulk(value); }
  void id(std::string_view name, StreamId value) { reply_stream_id(this->name(name), value); }
  template <class Number>
  void number(std::string_view name, Number value) {
    this->name(name).integer(static_cast<std::int64_t>(value));
  }
  void number_or_null(std::string_view name, std::optional<std::int64_t> value) {
    value ? number(name, *value) : this->name(name).null();
  }

 private:
  Reply& reply_;
};

std::optional<std::int64_t> entries_read(const StreamGroup& group) {
  if (group.entries_read == StreamGroup::unknown) return std::nullopt;
  return group.entries_read;
}

void reply_consumer_in_full(Reply& reply, const StreamGroup& group, const StreamConsumer& consumer,
                            std::size_t most) {
  MapReply map(reply, 4);
  map.text("name", consumer.name);
  map.number("seen-time", consumer.seen_ms);
  map.number("pel-count", consumer.pending.size());
  map.name("pending").array(std::min(most, consumer.pending.size()));
  std::size_t left = most;
  for (auto it = consumer.pending.begin(); it != consumer.pending.end() && left > 0; ++it, --left) {
    const StreamGroup::Pending& pending = group.pending().at(*it);
    reply.array(3);
    reply_stream_id(reply, *it);
    reply.integer(pending.delivered_ms);
    reply.integer(static_cast<std::int64_t>(pending.deliveries));
  }
}

void reply_group_in_full(Reply& reply, const Stream& stream, std::string_view name, const StreamGroup& group,
                         std::size_t most) {
  MapReply map(reply, 7);
  map.text("name", name);
  map.id("last-delivered-id", group.last_id);
  map.number_or_null("entries-read", entries_read(group));
  map.number_or_null("lag", stream.lag(group));
  map.number("pel-count", group.pending().size());
  map.name("pending").array(std::min(most, group.pending().size()));
  std::size_t left = most;
  for (auto it = group.pending().begin(); it != group.pending().end() && left > 0; ++it, --left) {
    reply.array(4);
    reply_stream_id(reply, it->first);
    reply.bulk(it->second.consumer->name);
    reply.integer(it->second.delivered_ms);
    reply.integer(static_cast<std::int64_t>(it->second.deliveries));
  }
  map.name("consumers").array(group.consumers().size());
  for (const auto& [consumer_name, consumer] : group.consumers()) {
    reply_consumer_in_full(reply, group, *consumer, most);
  }
}

void reply_edge(Reply& reply, const Stream& stream, StreamCursor::Order order) {
  StreamCursor cursor(stream, {}, StreamId::highest(), order);
  cursor.next() ? reply_stream_entry(reply, cursor) : reply.null();
}

void xinfo_stream(const Call& call) {
  Stream* stream = nullptr;
  if (!stream_of(call, stream)) return;
  const bool full = call.count() > 3;
  std::int64_t count = 10;
  if (full) {
    const bool counted = call.count() == 6 && is_word(call[4], "COUNT");
    if (!is_word(call[3], "FULL") || (call.count() != 4 && !counted)) return call.subcommand_error();
    if (counted && !call.integer(5, count)) return;
    if (count < 0) count = 10;
  }
  Reply& reply = call.reply;
  MapReply map(reply, full ? 9 : 10);
  map.number("length", stream->size());
  map.number("radix-tree-keys", stream->nodes().size());
  map.number("radix-tree-nodes", stream->radix_tree_nodes());
  map.id("last-generated-id", stream->last_id);
  map.id("max-deleted-entry-id", stream->max_deleted);
  map.number("entries-added", stream->entries_added);
  map.id("recorded-first-entry-id", stream->first_id());
  if (!full) {
    map.number("groups", stream->groups().size());
    reply_edge(map.name("first-entry"), *stream, StreamCursor::Order::forward);
    reply_edge(map.name("last-entry"), *stream, StreamCursor::Order::backward);
    return;
  }
  const std::size_t most = stream_count(count);
  reply_stream_range(map.name("entries"), *stream, {{}, StreamId::highest()}, most);
  map.name("groups").array(stream->groups().size());
  for (const auto& [name, group] : stream->groups()) reply_group_in_full(reply, *stream, name, *group, most);
}

void xinfo_groups(const Call& call) {
  Stream* stream = nullptr;
  if (!stream_of(call, stream)) return;
  call.reply.array(stream->groups().size());
  for (const auto& [name, group] : stream->groups()) {
    MapReply map(call.reply, 6);
    map.text("name", name);
    map.number("consumers", group->consumers().size());
    map.number("pending", group->pending().size());
    map.id("last-delivered-id", group->last_id);
    map.number_or_null("entries-read", entries_read(*group));
    map.number_or_null("lag", stream->lag(*group));
  }
}

void xinfo_consumers(const Call& call) {
  Stream* stream = nullptr;
  if (!stream_of(call, stream)) return;
  const StreamGroup* group = stream->find_group(call[3]);
  if (group == nullptr) {
    return call.reply.error("NOGROUP No such consumer group '" + std::string(up_to_zero(call[3])) +
                            "' for key name '" + std::string(up_to_zero(call[2])) + "'");
  }
  call.reply.array(group->consumers().size());
  for (const auto& [name, consumer] : group->consumers()) {
    MapReply map(call.reply, 3);
    map.text("name", name);
    map.number("pending", consumer->pending.size());
    map.number("idle", std::max<std::int64_t>(call.now_ms - consumer->seen_ms, 0));
  }
}

void xinfo_help(const Call& call) {
  reply_help(call, {
                       "CONSUMERS <key> <groupname>",
                       "    Show consumers of <groupname>.",
                       "GROUPS <key>",
                       "    Show the stream consumer groups.",
                       "STREAM <key> [FULL [COUNT <count>]",
                       "    Show information about the stream.",
                   });
}

}  // namespace

std::span<const Command> stream_info_commands() {
  using namespace flag;
  static constexpr Command subcommands[] = {
      {"consumers",
       4,
       readonly,
       2,
       2,
       1,
       xinfo_consumers,
       "stream",
       "Returns the consumers of a group.",
       {},
       "xinfo"},
      {"groups",
       3,
       readonly,
       2,
       2,
       1,
       xinfo_groups,
       "stream",
       "Returns the groups of a stream.",
       {},
       "xinfo"},
      {"stream", -3, readonly, 2, 2, 1, xinfo_stream, "stream", "Describes a stream.", {}, "xinfo"},
      {"help", 2, loading | stale, 0, 0, 0, xinfo_help, "stream", "Explains XINFO.", {}, "xinfo"},
  };
  static constexpr Command commands[] = {
      {"xinfo", -2, 0, 0, 0, 0, nullptr, "stream", "Looks at streams.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
