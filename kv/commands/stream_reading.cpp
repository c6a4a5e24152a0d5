// Streams: XREAD and XREADGROUP, which can wait for entries.
//
// As in Redis 7.0, a waiting client is served only from the stream that got an entry; its "$" was replaced by
// the id that it stood for. A reader of a group also waits for the group: if the group or the stream is
// deleted, the reader is told so.
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <limits>
#include <string>

#include "kv/call/call.hpp"
#include "kv/clients/blocking.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/commands/streams.hpp"

namespace weir::kv {

namespace {

struct ReadQuery {
  bool grouped = false;  // XREADGROUP
  std::string_view group, consumer;
  bool has_group = false;
  bool acknowledges = false;  // NOACK: read entries do not become pending
  bool waits = false;
  std::int64_t timeout_ms = 0;
  std::int64_t count = 0;
  std::size_t first_key = 0;
  std::size_t streams = 0;
};

// How many entries a client gets after waiting if it named no count.
constexpr std::int64_t count_after_wait = 1000;

class QueryParser {
 public:
  QueryParser(const Call& call, ReadQuery& query) : call_(call), query_(query) {}

  bool parse() {
    query_.grouped = call_.command.name == "xreadgroup";
    while (walk_.next()) {
      if (!take_option()) return false;
    }
    if (walk_.wrong() || query_.first_key == 0) return call_.syntax_error(), false;
    if (query_.grouped && !query_.has_group) return fail("ERR Missing GROUP option for XREADGROUP");
    return true;
  }

 private:
  bool fail(std::string_view error) const {
    call_.reply.error(error);
    return false;
  }

  bool take_option() {
    if (walk_.is("BLOCK")) return take_timeout();
    if (walk_.is("COUNT")) return call_.integer(walk_.value(), query_.count);
    if (walk_.is("STREAMS")) return take_streams();
    if (!query_.grouped) return refuse_group_option();
    if (walk_.is("NOACK")) {
      query_.acknowledges = true;
    } else {
      query_.has_group = true;
      query_.group = call_[walk_.value()];
      query_.consumer = call_[walk_.value() + 1];
    }
    return true;
  }

  bool refuse_group_option() const {
    return fail("ERR The " + std::string(walk_.option().word) +
                " option is only supported by XREADGROUP. You called XREAD instead.");
  }

  bool take_timeout() {
    query_.waits = true;
    if (!call_.integer(walk_.value(), query_.timeout_ms, "ERR timeout is not an integer or out of range"))
      return false;
    if (query_.timeout_ms < 0) return fail("ERR timeout is negative");
    // Limit it to a time that never comes.
    query_.timeout_ms =
        std::min(query_.timeout_ms, std::numeric_limits<std::int64_t>::max() - call_.server.steady_ms);
    return true;
  }

  bool take_streams() {
    const std::size_t words = call_.count() - walk_.value();
    if (words % 2 != 0) {
      return fail(
          "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.");
    }
    query_.first_key = walk_.value();
    query_.streams = words / 2;
    return true;
  }

  const Call& call_;
  ReadQuery& query_;
  OptionWalk walk_{stream_reading_options, call_.arguments};
};

// One of the streams that a client names; it wants the entries after `above`. In a group the highest id means
// ">", the entries that no consumer has got yet.
struct WantedStream {
  std::string_view key;
  Stream* stream = nullptr;
  StreamGroup* group = nullptr;
  StreamId above;

  bool wants_new() const { return above == StreamId::highest(); }
};
using WantedStreams = absl::InlinedVector<WantedStream, 8>;

bool resolve_id(const Call& call, const ReadQuery& query, std::string_view word, WantedStream& wanted) {
  const auto fail = [&](std::string_view error) {
    call.reply.error(error);
    return false;
  };
  const std::string_view text = up_to_zero(word);
  if (text == "$") {
    if (query.grouped) {
      return fail(
          "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this "
          "consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just "
          "return "
          "an empty result set.");
    }
    wanted.above = wanted.stream == nullptr ? StreamId{} : wanted.stream->last_id;
    return true;
  }
  if (text == "+") {
    if (query.grouped) {
      return fail(
          "ERR The + ID is meaningless in the context of XREADGROUP: you want to read the history of this "
          "consumer by specifying a proper ID, or use the > ID to get new messages. The + ID would just "
          "return "
          "an empty result set.");
    }
    const bool some = wanted.stream != nullptr && wanted.stream->size() != 0;
    wanted.above = some ? wanted.stream->newest().previous().value_or(StreamId{}) : StreamId{};
    return true;
  }
  if (text == ">") {
    if (!query.grouped) {
      return fail(
          "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> "
          "option.");
    }
    wanted.above = StreamId::highest();
    return true;
  }
  return stream_id(call, word, wanted.above);
}

bool resolve(const Call& call, const ReadQuery& query, WantedStreams& all) {
  for (std::size_t i = 0; i < query.streams; ++i) {
    WantedStream& wanted = all.emplace_back();
    wanted.key = call[query.first_key + i];
    if (!read_as(call, wanted.key, wanted.stream)) return false;
    if (query.grouped) {
      if (wanted.stream != nullptr) wanted.group = wanted.stream->find_group(query.group);
      if (wanted.group == nullptr) {
        call.reply.error("NOGROUP No such key '" + std::string(up_to_zero(wanted.key)) +
                         "' or consumer group '" + std::string(up_to_zero(query.group)) +
                         "' in XREADGROUP with GROUP option");
        return false;
      }
    }
    if (!resolve_id(call, query, call[query.first_key + query.streams + i], wanted)) return false;
  }
  return true;
}

// The answer of one stream.
struct Served {
  const WantedStream* wanted;
  StreamId above;
  bool history;  // entries that its consumer has already got
};
using AllServed = absl::InlinedVector<Served, 8>;

// How many earlier streams of this reply read new entries of the same group: a stream may be named twice.
std::size_t times_served(const AllServed& served, const WantedStream& wanted) {
  std::size_t times = 0;
  for (const Served& one : served) times += !one.history && one.wanted->group == wanted.group ? 1 : 0;
  return times;
}

// Whether a stream has an answer now. Sets `above` to the id after which it is read.
bool has_answer(const AllServed& served, const WantedStream& wanted, std::int64_t count, StreamId& above) {
  if (wanted.stream->size() == 0) return false;
  above = wanted.group == nullptr ? wanted.above : wanted.group->last_id;
  if (wanted.stream->newest() <= above) return false;
  const std::size_t before = wanted.group == nullptr ? 0 : times_served(served, wanted);
  if (before == 0) return true;
  if (count <= 0) return false;
  const std::size_t gone = before * static_cast<std::size_t>(count);
  return wanted.stream->count(above.next().value_or(above), StreamId::highest(), gone + 1) > gone;
}

StreamConsumer& consumer_of(const Call& call, const ReadQuery& query, const WantedStream& wanted) {
  StreamConsumer* consumer = wanted.group->find_consumer(query.consumer);
  if (consumer == nullptr) {
    call.replay_as({"XGROUP", "CREATECONSUMER", wanted.key, query.group, query.consumer});
    stream_group_changed(call);
    call.notify(wanted.key, {'t', "xgroup-createconsumer"});
    return wanted.group->add_consumer(query.consumer, call.now_ms);
  }
  consumer->seen_ms = call.now_ms;
  return *consumer;
}

// Advances the group to `id`.
void advance(const Stream& stream, StreamGroup& group, StreamId id) {
  if (id <= group.last_id) return;
  if (group.entries_read != StreamGroup::unknown && !stream.has_deleted_from(group.last_id)) {
    ++group.entries_read;
  } else if (stream.entries_added != 0) {
    group.entries_read = stream.estimate_read(id);
  }
  group.last_id = id;
}

// Replies with new entries for a consumer, which become pending for it.
void reply_new(const Call& call, const ReadQuery& query, const Served& served, std::int64_t count) {
  const Stream& stream = *served.wanted->stream;
  StreamGroup& group = *served.wanted->group;
  StreamConsumer& consumer = consumer_of(call, query, *served.wanted);
  const GroupName name{served.wanted->key, query.group};
  const StreamId above = group.last_id;  // may have been changed by the same stream, named earlier
  const StreamInterval interval{above.next().value_or(above), StreamId::highest()};
  const std::size_t entries = stream.count(interval.first, interval.last, stream_count(count));
  call.reply.array(entries);
  StreamCursor cursor(stream, interval.first, interval.last, StreamCursor::Order::forward);
  for (std::size_t i = 0; i < entries && cursor.next(); ++i) {
    reply_stream_entry(call.reply, cursor);
    advance(stream, group, cursor.id());
    if (query.acknowledges) continue;
    StreamGroup::Pending& pending = group.give(cursor.id(), consumer);
    pending.delivered_ms = call.now_ms;
    pending.deliveries = 1;
    replay_pending(call, name, group, cursor.id());
  }
  if (group.last_id != above) replay_progress(call, name, group);
}

// Replies with the consumer's pending entries; of a deleted entry only the id is left.
void reply_history(const Call& call, const ReadQuery& query, const Served& served) {
  const Stream& stream = *served.wanted->stream;
  StreamGroup& group = *served.wanted->group;
  StreamConsumer& consumer = consumer_of(call, query, *served.wanted);
  absl::InlinedVector<StreamId, 16> ids;
  const std::size_t most = stream_count(query.count);
  for (auto it = consumer.pending.upper_bound(served.above);
       it != consumer.pending.end() && ids.size() < most; ++it) {
    ids.push_back(*it);
  }
  call.reply.array(ids.size());
  for (const StreamId id : ids) {
    if (reply_stream_entry_of(call.reply, stream, id)) {
      StreamGroup::Pending& pending = *group.find(id);
      pending.delivered_ms = call.now_ms;
      ++pending.deliveries;
      replay_pending(call, {served.wanted->key, query.group}, group, id);
    } else {
      call.reply.array(2);
      reply_stream_id(call.reply, id);
      call.reply.null_array();
    }
  }
}

void reply_served(const Call& call, const ReadQuery& query, const Served& served, std::int64_t count) {
  if (!call.reply.resp3()) call.reply.array(2);
  call.reply.bulk(served.wanted->key);
  if (served.wanted->group == nullptr) {
    const StreamInterval interval{served.above.next().value_or(served.above), StreamId::highest()};
    return reply_stream_range(call.reply, *served.wanted->stream, interval, stream_count(count));
  }
  served.history ? reply_history(call, query, served) : reply_new(call, query, served, count);
}

void reply_all(const Call& call, const ReadQuery& query, const AllServed& all, std::int64_t count) {
  call.reply.resp3() ? call.reply.map(all.size()) : call.reply.array(all.size());
  for (const Served& served : all) reply_served(call, query, served, count);
}

AllServed find_answers(const ReadQuery& query, const WantedStreams& all) {
  AllServed answers;
  for (const WantedStream& wanted : all) {
    if (wanted.stream == nullptr) continue;
    StreamId above;
    if (wanted.group != nullptr && !wanted.wants_new()) {
      answers.push_back({&wanted, wanted.above, true});
    } else if (has_answer(answers, wanted, query.count, above)) {
      answers.push_back({&wanted, above, false});
    }
  }
  return answers;
}

// Parks the client, with ids in place of "$", which means the present.
void wait_for_entries(const Call& call, const ReadQuery& query, const WantedStreams& all) {
  const Arguments keys = call.arguments.subspan(query.first_key, query.streams);
  std::vector<Argument> words(call.arguments.begin(), call.arguments.end());
  std::vector<StreamIdText> ids;
  ids.reserve(all.size());
  for (std::size_t i = 0; i < all.size() && !query.grouped; ++i) {
    words[query.first_key + query.streams + i] = {ids.emplace_back(all[i].above).view(), nullptr};
  }
  call.server.wait_for(call, words, key_names(keys), query.timeout_ms, NullForm::array);
}

// A waiting client is tried again, for one key.
void serve_waiting(const Call& call, const ReadQuery& query) {
  WantedStream wanted;
  std::size_t i = 0;
  while (call[query.first_key + i] != call.ready_key) ++i;
  wanted.key = call.ready_key;
  const Record* record = call.write(wanted.key);
  const bool is_stream = record != nullptr && record->value.type() == Type::stream;
  if (is_stream) wanted.stream = &record->value.stream();
  if (query.grouped) {
    if (!is_stream)
      return call.server.blocking.fail(call.client, "UNBLOCKED the stream key no longer exists");
    wanted.group = wanted.stream->find_group(query.group);
    if (wanted.group == nullptr) {
      return call.server.blocking.fail(
          call.client, "NOGROUP the consumer group this client was blocked on no longer exists");
    }
    wanted.above = StreamId::highest();
  } else if (!stream_id(call, call[query.first_key + query.streams + i], wanted.above)) {
    return;
  }
  StreamId above;
  if (!is_stream || !has_answer({}, wanted, query.count, above)) {
    return call.server.wait_for(call, {}, query.timeout_ms, NullForm::array);
  }
  const AllServed answers{{&wanted, above, false}};
  reply_all(call, query, answers, query.count > 0 ? query.count : count_after_wait);
}

void xread(const Call& call) {
  ReadQuery query;
  if (!QueryParser(call, query).parse()) return;
  if (call.retried) return serve_waiting(call, query);
  WantedStreams all;
  if (!resolve(call, query, all)) return;
  const AllServed answers = find_answers(query, all);
  if (!answers.empty()) return reply_all(call, query, answers, query.count);
  if (!query.waits) return call.reply.null_array();
  wait_for_entries(call, query, all);
}

}  // namespace

std::span<const Command> stream_read_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"xread", -4, readonly | blocking | movablekeys, 0, 0, 0, xread, "stream",
       "Returns entries above given ids, waits for some."},
      {"xreadgroup", -7, write | blocking | movablekeys, 0, 0, 0, xread, "stream",
       "Gives entries to a consumer of a group, waits for some."},
  };
  return commands;
}

}  // namespace weir::kv
