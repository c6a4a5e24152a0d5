// Streams: adding, counting, reading by id, deleting. Groups are in stream_groups.cpp and stream_claims.cpp,
// XREAD and its kin in stream_reading.cpp.
#include "kv/commands/streams.hpp"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <string>

#include "kv/call/call.hpp"
#include "kv/effects/effects.hpp"

namespace weir::kv {

namespace {

StreamNodeLimits node_limits(const Call& call) {
  const Settings& s = call.server.settings;
  return {static_cast<std::size_t>(s.stream_node_max_bytes),
          static_cast<std::size_t>(s.stream_node_max_entries)};
}

// XADD's id, as far as the client gives it.
struct WantedId {
  enum class Given : std::uint8_t { nothing, ms, whole };
  Given given = Given::nothing;
  StreamId id;
};

// The options of XADD and XTRIM, before an id or after the key.
struct StreamOptions {
  bool make = true;
  StreamTrim trim;
  WantedId id;
  std::size_t id_at = 0;
};

enum class Of : std::uint8_t { xadd, xtrim };

class OptionParser {
 public:
  OptionParser(const Call& call, Of of) : call_(call), of_(of) {}

  bool parse(StreamOptions& options) {
    for (at_ = 2; at_ < call_.count(); ++at_) {
      if (of_ == Of::xadd && up_to_zero(call_[at_]) == "*") break;
      if (is_option("MAXLEN") || is_option("MINID")) {
        if (!take_threshold(options.trim)) return false;
      } else if (is_option("LIMIT")) {
        if (!take_limit(options.trim)) return false;
      } else if (of_ == Of::xtrim) {
        return call_.syntax_error(), false;
      } else if (is_word(call_[at_], "NOMKSTREAM")) {
        options.make = false;
      } else {
        if (!take_id(options.id)) return false;
        break;
      }
    }
    options.id_at = at_;
    return settle_limit(options.trim);
  }

 private:
  std::size_t behind() const { return call_.count() - 1 - at_; }
  bool is_option(std::string_view word) const { return is_word(call_[at_], word) && behind() != 0; }
  bool fail(std::string_view error) const {
    call_.reply.error(error);
    return false;
  }

  bool take_threshold(StreamTrim& trim) {
    if (trim.down != StreamTrim::Down::nothing) {
      return fail("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
    }
    const bool by_length = is_word(call_[at_], "MAXLEN");
    ++at_;
    const std::string_view sign = up_to_zero(call_[at_]);
    if (behind() != 0 && (sign == "~" || sign == "=")) {
      trim.whole_nodes = sign == "~";
      ++at_;
    }
    if (!by_length) {
      trim.down = StreamTrim::Down::to_id;
      return stream_id(call_, call_[at_], trim.id);
    }
    std::int64_t length = 0;
    if (!call_.integer(at_, length)) return false;
    if (length < 0) return fail("ERR The MAXLEN argument must be >= 0.");
    trim.down = StreamTrim::Down::to_length;
    trim.length = static_cast<std::uint64_t>(length);
    return true;
  }

  bool take_limit(StreamTrim& trim) {
    std::int64_t limit = 0;
    if (!call_.integer(++at_, limit)) return false;
    if (limit < 0) return fail("ERR The LIMIT argument must be >= 0.");
    trim.limit = static_cast<std::uint64_t>(limit);
    limited_ = true;
    return true;
  }

  bool take_id(WantedId& wanted) const {
    std::string_view text = up_to_zero(call_[at_]);
    wanted.given = WantedId::Given::whole;
    if (text.ends_with("-*") && text.find('-') == text.size() - 2 && call_[at_].size() <= 127) {
      wanted.given = WantedId::Given::ms;
      text.remove_suffix(2);
      return stream_id(call_, text, wanted.id);
    }
    return stream_id(call_, call_[at_], wanted.id);
  }

  // Trimming by whole nodes always has a limit, so that no call takes too long.
  bool settle_limit(StreamTrim& trim) const {
    const bool trims = trim.down != StreamTrim::Down::nothing;
    if (trim.limit != 0 && !trims) {
      return fail("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
    }
    if (of_ == Of::xtrim && !trims) {
      return fail("ERR syntax error, XTRIM must be called with a trimming strategy");
    }
    if (limited_ && !trim.whole_nodes) {
      return fail("ERR syntax error, LIMIT cannot be used without the special ~ option");
    }
    if (limited_ || !trim.whole_nodes) return true;
    constexpr std::int64_t nodes = 100;
    constexpr std::int64_t usual = 10'000;
    constexpr std::int64_t most = 1'000'000;
    const std::int64_t per_node = std::min(call_.server.settings.stream_node_max_entries, most);
    trim.limit = static_cast<std::uint64_t>(per_node <= 0 ? usual : std::min(nodes * per_node, most));
    return true;
  }

  const Call& call_;
  Of of_;
  std::size_t at_ = 0;
  bool limited_ = false;
};

// nullopt: the requested id is not above the last one.
std::optional<StreamId> choose_id(StreamId last, const WantedId& wanted, std::int64_t now_ms) {
  StreamId id = wanted.id;
  switch (wanted.given) {
    case WantedId::Given::nothing: {
      const auto ms = static_cast<std::uint64_t>(now_ms);
      return ms > last.ms ? StreamId{ms, 0} : last.next();
    }
    case WantedId::Given::ms:
      if (id.ms == last.ms) {
        if (last.seq == StreamId::most) return std::nullopt;
        id.seq = last.seq + 1;
      }
      break;
    case WantedId::Given::whole:
      break;
  }
  if (id <= last) return std::nullopt;
  return id;
}

// Replays with the chosen id and the resulting length. If the original words give both exactly,
// they are replayed instead.
void replay_addition(const Call& call, const StreamOptions& options, const Stream& stream) {
  if (options.id.given == WantedId::Given::whole && !options.trim.whole_nodes) return;
  if (!call.heard()) return;
  const StreamIdText id(stream.last_id);
  const StreamIdText lowest(options.trim.id);
  std::vector<RequestWord> words{"XADD", call[1]};
  if (options.trim.whole_nodes) {
    words.insert(words.end(), {"MAXLEN", "=", static_cast<std::int64_t>(stream.size())});
  } else if (options.trim.down == StreamTrim::Down::to_length) {
    words.insert(words.end(), {"MAXLEN", "=", static_cast<std::int64_t>(options.trim.length)});
  } else if (options.trim.down == StreamTrim::Down::to_id) {
    words.insert(words.end(), {"MINID", "=", lowest.view()});
  }
  words.emplace_back(id.view());
  for (const Argument& word : call.arguments.subspan(options.id_at + 1)) words.emplace_back(word);
  call.server.effects.say(call.db.index(), words);
}

void xadd(const Call& call) {
  StreamOptions options;
  if (!OptionParser(call, Of::xadd).parse(options)) return;
  const std::size_t first_word = options.id_at + 1;
  if (first_word + 2 > call.count() || (call.count() - first_word) % 2 != 0) {
    return call.reply.error("ERR wrong number of arguments for 'xadd' command");
  }
  if (options.id.given == WantedId::Given::whole && options.id.id.is_zero()) {
    return call.reply.error("ERR The ID specified in XADD must be greater than 0-0");
  }
  Stream* stream = nullptr;
  if (!write_as(call, call[1], stream)) return;
  if (stream == nullptr && !options.make) return call.reply.null();
  if (stream != nullptr && stream->last_id == StreamId::highest()) {
    return call.reply.error("ERR The stream has exhausted the last possible ID, unable to add more items");
  }
  absl::InlinedVector<std::string_view, 16> words;
  std::size_t bytes = 0;
  for (const Argument& word : call.arguments.subspan(first_word)) {
    words.push_back(word.text);
    bytes += word.text.size();
  }
  const auto id = choose_id(stream == nullptr ? StreamId{} : stream->last_id, options.id, call.now_ms);
  if (!id) {
    return call.reply.error(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item");
  }
  if (bytes > StreamNode::most_bytes) return call.reply.error("ERR Elements are too large to be stored");
  if (stream == nullptr) stream = &make_stream(call, call[1]);
  stream->append(*id, words, node_limits(call));
  reply_stream_id(call.reply, *id);
  stream->trim(options.trim);
  replay_addition(call, options, *stream);
  call.changed(call[1]);
}

void xlen(const Call& call) {
  Stream* stream = nullptr;
  if (!read_as(call, call[1], stream)) return;
  call.reply.integer(stream == nullptr ? 0 : static_cast<std::int64_t>(stream->size()));
}

void range(const Call& call, std::size_t start_at, std::size_t end_at, StreamCursor::Order order) {
  StreamInterval interval;
  if (!stream_interval_start(call, call[start_at], interval.first) ||
      !stream_interval_end(call, call[end_at], interval.last)) {
    return;
  }
  std::int64_t count = -1;
  for (std::size_t i = 4; i < call.count(); i += 2) {
    if (!is_word(call[i], "COUNT") || i + 1 == call.count()) return call.syntax_error();
    if (!call.integer(i + 1, count)) return;
    count = std::max<std::int64_t>(count, 0);
  }
  Stream* stream = nullptr;
  if (!read_as(call, call[1], stream)) return;
  if (stream == nullptr) return call.reply.array(0);
  if (count == 0) return call.reply.null_array();
  reply_stream_range(call.reply, *stream, interval, stream_count(count), order);
}
void xrange(const Call& call) { range(call, 2, 3, StreamCursor::Order::forward); }
void xrevrange(const Call& call) { range(call, 3, 2, StreamCursor::Order::backward); }

void xdel(const Call& call) {
  Stream* stream = nullptr;
  if (!write_as(call, call[1], stream)) return;
  if (stream == nullptr) return call.reply.integer(0);
  // Parse all ids before the first entry is deleted.
  absl::InlinedVector<StreamId, 8> ids(call.count() - 2);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!stream_id(call, call[i + 2], ids[i])) return;
  }
  const auto deleted = std::ranges::count_if(ids, [&](StreamId id) { return stream->erase(id); });
  if (deleted != 0) call.changed(call[1]);
  call.reply.integer(deleted);
}

void xtrim(const Call& call) {
  StreamOptions options;
  if (!OptionParser(call, Of::xtrim).parse(options)) return;
  Stream* stream = nullptr;
  if (!write_as(call, call[1], stream)) return;
  if (stream == nullptr) return call.reply.integer(0);
  const std::uint64_t taken = stream->trim(options.trim);
  if (taken != 0) {
    // Nodes may end elsewhere in a copy of the data.
    if (options.trim.whole_nodes) {
      call.replay_as({"XTRIM", call[1], "MAXLEN", "=", static_cast<std::int64_t>(stream->size())});
    }
    call.changed(call[1]);
  }
  call.reply.integer(static_cast<std::int64_t>(taken));
}

struct SetIdOptions {
  std::int64_t entries_added = -1;
  StreamId max_deleted;
};

bool parse_set_id(const Call& call, StreamId id, SetIdOptions& options) {
  for (std::size_t i = 3; i < call.count(); i += 2) {
    const bool has_value = i + 1 < call.count();
    if (is_word(call[i], "ENTRIESADDED") && has_value) {
      if (!call.integer(i + 1, options.entries_added)) return false;
      if (options.entries_added < 0) {
        return call.reply.error("ERR entries_added must be positive"), false;
      }
    } else if (is_word(call[i], "MAXDELETEDID") && has_value) {
      if (!stream_id(call, call[i + 1], options.max_deleted)) return false;
      if (id < options.max_deleted) {
        call.reply.error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
        return false;
      }
    } else {
      return call.syntax_error(), false;
    }
  }
  return true;
}

void xsetid(const Call& call) {
  StreamId id;
  SetIdOptions options;
  if (!stream_id(call, call[2], id) || !parse_set_id(call, id, options)) return;
  Stream* stream = nullptr;
  Record* record = call.write(call[1]);
  if (record == nullptr) return call.reply.error("ERR no such key");
  if (!collection_of(call, record, stream)) return;
  if (stream->size() != 0) {
    if (id < stream->newest()) {
      return call.reply.error("ERR The ID specified in XSETID is smaller than the target stream top item");
    }
    if (options.entries_added != -1 && stream->size() > static_cast<std::uint64_t>(options.entries_added)) {
      return call.reply.error(
          "ERR The entries_added specified in XSETID is smaller than the target stream length");
    }
  }
  // A deleted entry's id may not be given out again.
  if (id < stream->max_deleted)
    return call.reply.error("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
  stream->last_id = id;
  if (options.entries_added != -1) stream->entries_added = static_cast<std::uint64_t>(options.entries_added);
  if (!options.max_deleted.is_zero()) stream->max_deleted = options.max_deleted;
  stream_group_changed(call);
  call.reply.ok();
}

}  // namespace

std::span<const Command> stream_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"xadd", -5, write | denyoom | fast, 1, 1, 1, xadd, "stream", "Adds an entry to a stream."},
      {"xlen", 2, readonly | fast, 1, 1, 1, xlen, "stream", "Counts the entries of a stream."},
      {"xrange", -4, readonly, 1, 1, 1, xrange, "stream", "Returns the entries between two ids."},
      {"xrevrange", -4, readonly, 1, 1, 1, xrevrange, "stream",
       "Returns the entries between two ids, the last first."},
      {"xdel", -3, write | fast, 1, 1, 1, xdel, "stream", "Deletes entries by their ids."},
      {"xtrim", -4, write, 1, 1, 1, xtrim, "stream", "Takes the oldest entries away."},
      {"xsetid", -3, write | denyoom | fast, 1, 1, 1, xsetid, "stream",
       "Sets what a stream remembers of its ids."},
  };
  return commands;
}

}  // namespace weir::kv
