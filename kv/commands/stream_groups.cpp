// Streams: groups and their pending entries. Moving pending entries is in stream_claims.cpp.
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <string>

#include "kv/call/call.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/commands/help.hpp"
#include "kv/commands/streams.hpp"

namespace weir::kv {

namespace {

// Common to XGROUP's subcommands: key and group, and what may follow them.
struct GroupCall {
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  bool make_stream = false;
  std::int64_t entries_read = StreamGroup::unknown;
};

bool parse_group_options(const Call& call, GroupCall& found) {
  const bool creates = call.command.name == "create";
  const bool sets = call.command.name == "setid";
  for (std::size_t i = 5; i < call.count(); ++i) {
    if (creates && is_word(call[i], "MKSTREAM")) {
      found.make_stream = true;
    } else if ((creates || sets) && is_word(call[i], "ENTRIESREAD") && i + 1 < call.count()) {
      if (!call.integer(++i, found.entries_read)) return false;
      if (found.entries_read < 0 && found.entries_read != StreamGroup::unknown) {
        return call.reply.error("ERR value for ENTRIESREAD must be positive or -1"), false;
      }
    } else {
      return call.subcommand_error(), false;
    }
  }
  return true;
}

enum class Group : std::uint8_t { must_be, may_be };

bool find_group(const Call& call, Group group, GroupCall& found) {
  if (!parse_group_options(call, found) || !write_as(call, call[2], found.stream)) return false;
  if (found.make_stream) return true;
  if (found.stream == nullptr) {
    call.reply.error(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the "
        "MKSTREAM option to create an empty stream automatically.");
    return false;
  }
  found.group = found.stream->find_group(call[3]);
  if (found.group != nullptr || group == Group::may_be) return true;
  call.reply.error("NOGROUP No such consumer group '" + std::string(up_to_zero(call[3])) +
                   "' for key name '" + std::string(up_to_zero(call[2])) + "'");
  return false;
}

void create(const Call& call) {
  GroupCall found;
  if (!find_group(call, Group::may_be, found)) return;
  if (call.count() > 8) return call.subcommand_error();
  StreamId id;
  if (up_to_zero(call[4]) == "$") {
    if (found.stream != nullptr) id = found.stream->last_id;
  } else if (!stream_id(call, call[4], id)) {
    return;
  }
  const bool made = found.stream == nullptr;
  if (made) found.stream = &make_stream(call, call[2]);
  if (found.stream->add_group(call[3], id, found.entries_read) == nullptr) {
    return call.reply.error("BUSYGROUP Consumer Group name already exists");
  }
  made ? call.changed(call[2]) : stream_group_changed(call);
  call.reply.ok();
}

void set_id(const Call& call) {
  GroupCall found;
  if (!find_group(call, Group::must_be, found)) return;
  if (call.count() != 5 && call.count() != 7) return call.subcommand_error();
  StreamId id;
  const std::string_view word = up_to_zero(call[4]);
  if (word == "$") {
    id = found.stream->last_id;
  } else if (word == "-" || word == "+") {
    id = word == "-" ? StreamId{} : StreamId::highest();
  } else if (!stream_id(call, call[4], id)) {
    return;
  }
  found.group->last_id = id;
  found.group->entries_read = found.entries_read;
  stream_group_changed(call);
  call.reply.ok();
}

void destroy(const Call& call) {
  GroupCall found;
  if (!find_group(call, Group::may_be, found)) return;
  if (found.group == nullptr) return call.reply.integer(0);
  found.stream->remove_group(call[3]);
  stream_group_changed(call);
  // Tell its waiting readers.
  call.server.blocking.signal(call.db.index(), call[2]);
  call.reply.integer(1);
}

void create_consumer(const Call& call) {
  GroupCall found;
  if (!find_group(call, Group::must_be, found)) return;
  const bool fresh = found.group->find_consumer(call[4]) == nullptr;
  if (fresh) {
    found.group->add_consumer(call[4], call.now_ms);
    stream_group_changed(call);
  }
  call.reply.integer(fresh ? 1 : 0);
}

void delete_consumer(const Call& call) {
  GroupCall found;
  if (!find_group(call, Group::must_be, found)) return;
  const StreamConsumer* consumer = found.group->find_consumer(call[4]);
  if (consumer == nullptr) return call.reply.integer(0);
  const auto pending = static_cast<std::int64_t>(consumer->pending.size());
  found.group->remove_consumer(call[4]);
  stream_group_changed(call);
  call.reply.integer(pending);
}

void group_help(const Call& call) {
  reply_help(call, {
                       "CREATE <key> <groupname> <id|$> [option]",
                       "    Create a new consumer group. Options are:",
                       "    * MKSTREAM",
                       "      Create the empty stream if it does not exist.",
                       "    * ENTRIESREAD entries_read",
                       "      Set the group's entries_read counter (internal use).",
                       "CREATECONSUMER <key> <groupname> <consumer>",
                       "    Create a new consumer in the specified group.",
                       "DELCONSUMER <key> <groupname> <consumer>",
                       "    Remove the specified consumer.",
                       "DESTROY <key> <groupname>",
                       "    Remove the specified group.",
                       "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
                       "    Set the current group ID and entries_read counter.",
                   });
}

void xack(const Call& call) {
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  if (!stream_group_of(call, call[1], call[2], stream, group)) return;
  if (group == nullptr) return call.reply.integer(0);
  // Parse all ids before the first is removed.
  absl::InlinedVector<StreamId, 8> ids(call.count() - 3);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!stream_id(call, call[i + 3], ids[i])) return;
  }
  const auto taken = std::ranges::count_if(ids, [&](StreamId id) { return group->take_back(id); });
  if (taken != 0) stream_group_changed(call);
  call.reply.integer(taken);
}

struct PendingQuery {
  StreamInterval interval;
  std::int64_t count = 0;
  std::int64_t least_idle_ms = 0;
  std::optional<std::string_view> consumer;
};

bool parse_pending_query(const Call& call, PendingQuery& query) {
  std::size_t at = 3;
  if (is_word(call[3], "IDLE")) {
    if (!call.integer(4, query.least_idle_ms)) return false;
    if (call.count() < 8) return call.syntax_error(), false;
    at = 5;
  }
  if (!call.integer(at + 2, query.count) || !stream_interval_start(call, call[at], query.interval.first) ||
      !stream_interval_end(call, call[at + 1], query.interval.last)) {
    return false;
  }
  if (at + 3 < call.count()) query.consumer = call[at + 3];
  return true;
}

void reply_summary(const Call& call, const StreamGroup& group) {
  call.reply.array(4);
  call.reply.integer(static_cast<std::int64_t>(group.pending().size()));
  if (group.pending().empty()) {
    call.reply.null();
    call.reply.null();
    return call.reply.null_array();
  }
  reply_stream_id(call.reply, group.pending().begin()->first);
  reply_stream_id(call.reply, group.pending().rbegin()->first);
  const auto busy = [](const auto& entry) { return !entry.second->pending.empty(); };
  call.reply.array(static_cast<std::size_t>(std::ranges::count_if(group.consumers(), busy)));
  for (const auto& [name, consumer] : group.consumers()) {
    if (consumer->pending.empty()) continue;
    call.reply.array(2);
    call.reply.bulk(name);
    call.reply.bulk_int(static_cast<std::int64_t>(consumer->pending.size()));
  }
}

struct PendingEntry {
  StreamId id;
  const StreamGroup::Pending* pending;
};

void reply_pending(const Call& call, StreamGroup& group, const PendingQuery& query) {
  std::vector<PendingEntry> found;
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(query.count, 0));
  const auto consider = [&](StreamId id, const StreamGroup::Pending& pending) {
    if (query.least_idle_ms != 0 && call.now_ms - pending.delivered_ms < query.least_idle_ms) return;
    found.push_back({id, &pending});
  };
  if (query.consumer) {
    const StreamConsumer* consumer = group.find_consumer(*query.consumer);
    if (consumer == nullptr) return call.reply.array(0);
    for (auto it = consumer->pending.lower_bound(query.interval.first);
         it != consumer->pending.end() && *it <= query.interval.last && found.size() < most; ++it) {
      consider(*it, *group.find(*it));
    }
  } else {
    for (auto it = group.pending().lower_bound(query.interval.first);
         it != group.pending().end() && it->first <= query.interval.last && found.size() < most; ++it) {
      consider(it->first, it->second);
    }
  }
  call.reply.array(found.size());
  for (const PendingEntry& entry : found) {
    call.reply.array(4);
    reply_stream_id(call.reply, entry.id);
    call.reply.bulk(entry.pending->consumer->name);
    call.reply.integer(std::max<std::int64_t>(call.now_ms - entry.pending->delivered_ms, 0));
    call.reply.integer(static_cast<std::int64_t>(entry.pending->deliveries));
  }
}

void xpending(const Call& call) {
  const bool summary = call.count() == 3;
  if (!summary && (call.count() < 6 || call.count() > 9)) return call.syntax_error();
  PendingQuery query;
  if (!summary && !parse_pending_query(call, query)) return;
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  if (!stream_group_of(call, call[1], call[2], stream, group)) return;
  if (group == nullptr) {
    return call.reply.error("NOGROUP No such key '" + std::string(up_to_zero(call[1])) +
                            "' or consumer group '" + std::string(up_to_zero(call[2])) + "'");
  }
  summary ? reply_summary(call, *group) : reply_pending(call, *group, query);
}

}  // namespace

std::span<const Command> stream_group_commands() {
  using namespace flag;
  static constexpr Command subcommands[] = {
      {"create", -5, write | denyoom, 2, 2, 1, create, "stream", "Makes a group.", {}, "xgroup"},
      {"createconsumer",
       5,
       write | denyoom,
       2,
       2,
       1,
       create_consumer,
       "stream",
       "Makes a consumer of a group.",
       {},
       "xgroup"},
      {"delconsumer",
       5,
       write,
       2,
       2,
       1,
       delete_consumer,
       "stream",
       "Removes a consumer of a group.",
       {},
       "xgroup"},
      {"destroy", 4, write, 2, 2, 1, destroy, "stream", "Removes a group.", {}, "xgroup"},
      {"setid", -5, write, 2, 2, 1, set_id, "stream", "Sets how far a group has read.", {}, "xgroup"},
      {"help", 2, loading | stale, 0, 0, 0, group_help, "stream", "Explains XGROUP.", {}, "xgroup"},
  };
  static constexpr Command commands[] = {
      {"xack", -4, write | fast, 1, 1, 1, xack, "stream", "Marks pending entries as done."},
      {"xpending", -3, readonly, 1, 1, 1, xpending, "stream", "Returns what is pending in a group."},
      {"xgroup", -2, 0, 0, 0, 0, nullptr, "stream", "Manages the groups of a stream.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
