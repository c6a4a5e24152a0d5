#include <cerrno>
#include <cstdlib>
#include <string>

#include "kv/call/call.hpp"
#include "kv/clients/notifications.hpp"
#include "kv/command/usual_event.hpp"
#include "kv/commands/streams.hpp"
#include "kv/effects/effects.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

// As in Redis: anything but a plain number goes through strtoull(), which accepts leading
// blanks, signs and zeros.
std::optional<std::uint64_t> parse_unsigned(const std::string& text) {
  if (const auto plain = parse_int(text)) {
    if (*plain < 0) return std::nullopt;
    return static_cast<std::uint64_t>(*plain);
  }
  if (text.empty()) return std::nullopt;
  errno = 0;
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
  if (errno != 0 || *end != 0) return std::nullopt;
  return value;
}

constexpr std::size_t longest_id = 127;

// Also accepts "-" and "+".
std::optional<StreamId> parse_id_bound(std::string_view text, std::uint64_t missing_seq) {
  const std::string_view word = up_to_zero(text);
  if (text.size() <= longest_id && word == "-") return StreamId{};
  if (text.size() <= longest_id && word == "+") return StreamId::highest();
  return parse_stream_id(text, missing_seq);
}

bool is_exclusive(std::string_view text) { return text.size() > 1 && text[0] == '('; }

bool parse_end_of_interval(const Call& call, std::string_view text, std::uint64_t missing_seq, StreamId& id) {
  const auto parsed =
      is_exclusive(text) ? parse_stream_id(text.substr(1), missing_seq) : parse_id_bound(text, missing_seq);
  if (!parsed) return wrong_stream_id(call), false;
  id = *parsed;
  return true;
}

}  // namespace

Stream& make_stream(const Call& call, std::string_view key) {
  auto* made = new Stream;
  call.db.insert(key).value = Value(made);
  return *made;
}

std::optional<StreamId> parse_stream_id(std::string_view text, std::uint64_t missing_seq) {
  if (text.size() > longest_id) return std::nullopt;
  const std::string_view word = up_to_zero(text);
  const std::size_t dash = word.find('-');
  const auto ms = parse_unsigned(std::string(word.substr(0, dash)));
  if (!ms) return std::nullopt;
  if (dash == std::string_view::npos) return StreamId{*ms, missing_seq};
  const auto seq = parse_unsigned(std::string(word.substr(dash + 1)));
  if (!seq) return std::nullopt;
  return StreamId{*ms, *seq};
}

void wrong_stream_id(const Call& call) {
  call.reply.error("ERR Invalid stream ID specified as stream command argument");
}

bool stream_id(const Call& call, std::string_view text, StreamId& id, std::uint64_t missing_seq) {
  const auto parsed = parse_stream_id(text, missing_seq);
  if (!parsed) return wrong_stream_id(call), false;
  id = *parsed;
  return true;
}

bool stream_interval_start(const Call& call, std::string_view text, StreamId& first) {
  if (!parse_end_of_interval(call, text, 0, first)) return false;
  if (!is_exclusive(text)) return true;
  const auto behind = first.next();
  if (!behind) return call.reply.error("ERR invalid start ID for the interval"), false;
  first = *behind;
  return true;
}

bool stream_interval_end(const Call& call, std::string_view text, StreamId& last) {
  if (!parse_end_of_interval(call, text, StreamId::most, last)) return false;
  if (!is_exclusive(text)) return true;
  const auto before = last.previous();
  if (!before) return call.reply.error("ERR invalid end ID for the interval"), false;
  last = *before;
  return true;
}

void reply_stream_id(Reply& reply, StreamId id) { reply.bulk(StreamIdText(id).view()); }

void reply_stream_entry(Reply& reply, const StreamCursor& cursor) {
  reply.array(2);
  reply_stream_id(reply, cursor.id());
  reply.array(cursor.fields() * 2);
  cursor.for_each_pair([&](std::string_view name, std::string_view value) {
    reply.bulk(name);
    reply.bulk(value);
  });
}

void reply_stream_range(Reply& reply, const Stream& stream, StreamInterval interval, std::size_t most,
                        StreamCursor::Order order) {
  const std::size_t count = stream.count(interval.first, interval.last, most);
  reply.array(count);
  StreamCursor cursor(stream, interval.first, interval.last, order);
  for (std::size_t i = 0; i < count && cursor.next(); ++i) reply_stream_entry(reply, cursor);
}

bool reply_stream_entry_of(Reply& reply, const Stream& stream, StreamId id) {
  StreamCursor cursor(stream, id, id, StreamCursor::Order::forward);
  if (!cursor.next()) return false;
  reply_stream_entry(reply, cursor);
  return true;
}

void stream_group_changed(const Call& call) {
  call.server.effects.changed_all();
  // XGROUP's subcommands are events of their key; acknowledging and claiming are not.
  if (call.server.notifications.any())
    call.notify(call[call.command.container.empty() ? 1 : 2], usual_event(call.command));
}

void replay_pending(const Call& call, const GroupName& name, StreamGroup& group, StreamId id) {
  stream_group_changed(call);
  if (!call.heard()) return;
  const StreamGroup::Pending& pending = *group.find(id);
  call.replay_as({"XCLAIM", name.key, name.group, pending.consumer->name, "0", StreamIdText(id).view(),
                  "TIME", pending.delivered_ms, "RETRYCOUNT", static_cast<std::int64_t>(pending.deliveries),
                  "FORCE", "JUSTID", "LASTID", StreamIdText(group.last_id).view()});
}

void replay_taken_back(const Call& call, const GroupName& name, StreamId id) {
  stream_group_changed(call);
  call.replay_as({"XACK", name.key, name.group, StreamIdText(id).view()});
}

void replay_progress(const Call& call, const GroupName& name, const StreamGroup& group) {
  stream_group_changed(call);
  call.replay_as({"XGROUP", "SETID", name.key, name.group, StreamIdText(group.last_id).view(), "ENTRIESREAD",
                  group.entries_read});
}

bool stream_group_of(const Call& call, std::string_view key, std::string_view name, Stream*& stream,
                     StreamGroup*& group) {
  group = nullptr;
  if (!read_as(call, key, stream)) return false;
  if (stream != nullptr) group = stream->find_group(name);
  return true;
}

}  // namespace weir::kv
