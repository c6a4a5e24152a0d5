// SCAN and its kin: walking a collection in steps while it changes. store/table.hpp states the guarantees.
#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "kv/command/cursor.hpp"
#include "kv/commands/collection.hpp"
#include "kv/text/glob.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

struct ScanQuery {
  std::uint64_t cursor = 0;
  std::int64_t count = 10;
  std::string_view pattern;
  bool filters = false;
  std::string_view type;
  bool by_type = false;
  bool without_values = false;  // HSCAN's NOVALUES, ZSCAN's NOSCORES
};

// What is walked decides which options there are.
enum class Scanned : std::uint8_t { keys, set, hash, zset };

bool is_type(std::string_view name) {
  constexpr Type all[] = {Type::string, Type::list, Type::set, Type::hash, Type::zset, Type::stream};
  return std::ranges::any_of(all, [&](Type type) { return is_word(name, type_name(type)); });
}

bool parse_cursor(const Call& call, std::size_t at, std::uint64_t& cursor) {
  const auto read = read_cursor(call[at]);
  if (!read) return call.reply.error("ERR invalid cursor"), false;
  cursor = *read;
  return true;
}

bool parse_options(const Call& call, std::size_t at, Scanned what, ScanQuery& query) {
  for (; at < call.count(); at += 2) {
    const bool has_value = at + 1 < call.count();
    if (is_word(call[at], "COUNT") && has_value) {
      if (!call.integer(at + 1, query.count)) return false;
      if (query.count < 1) {
        call.syntax_error();
        return false;
      }
    } else if (is_word(call[at], "MATCH") && has_value) {
      query.pattern = call[at + 1];
      query.filters = query.pattern != "*";
    } else if (what == Scanned::keys && is_word(call[at], "TYPE") && has_value) {
      query.type = call[at + 1];
      query.by_type = true;
      if (!is_type(query.type)) {
        call.reply.error("ERR unknown type name '" + std::string(up_to_zero(query.type)) + "'");
        return false;
      }
    } else if (what == Scanned::zset && is_word(call[at], "NOSCORES")) {
      query.without_values = true;
      --at;  // it has no value
    } else if (is_word(call[at], "NOVALUES")) {
      if (what != Scanned::hash) {
        call.reply.error("ERR NOVALUES option can only be used in HSCAN");
        return false;
      }
      query.without_values = true;
      --at;  // it has no value
    } else {
      call.syntax_error();
      return false;
    }
  }
  return true;
}

// Takes steps until enough is found. The number of steps is bounded, because a sparse table needs many.
template <class Step>
std::uint64_t take_steps(const ScanQuery& query, const std::vector<std::string>& found, Step step) {
  std::uint64_t cursor = query.cursor;
  const std::int64_t most_steps =
      query.count > std::numeric_limits<std::int64_t>::max() / 10 ? query.count : query.count * 10;
  for (std::int64_t i = 0; i < most_steps; ++i) {
    cursor = step(cursor);
    if (cursor == 0 || static_cast<std::int64_t>(found.size()) >= query.count) break;
  }
  return cursor;
}

void reply_scan(const Call& call, std::uint64_t cursor, const std::vector<std::string>& found) {
  call.reply.array(2);
  call.reply.bulk(std::to_string(cursor));
  call.reply.array(found.size());
  for (const std::string& text : found) call.reply.bulk(text);
}

bool matches(const ScanQuery& query, std::string_view text) {
  return !query.filters || glob_match(query.pattern, text);
}

void scan(const Call& call) {
  ScanQuery query;
  if (!parse_cursor(call, 1, query.cursor) || !parse_options(call, 2, Scanned::keys, query)) return;
  std::vector<std::string> found;
  const std::uint64_t cursor = take_steps(query, found, [&](std::uint64_t at) {
    return call.db.records().scan(at, [&](const Record& record) { found.emplace_back(record.key()); });
  });
  // Filter after the walk: this removes expired keys, which would disturb it. Those of another type stay.
  const auto of_type = [&](const Record* record) {
    return !query.by_type || is_word(query.type, type_name(record->value.type()));
  };
  std::erase_if(found, [&](const std::string& key) {
    if (!matches(query, key)) return true;
    const Record* const record = call.db.records().find(key);
    return record == nullptr || !of_type(record) || call.db.peek(key, call.now_ms) == nullptr;
  });
  reply_scan(call, cursor, found);
}

// A missing collection is empty: cursor 0 and no elements.
template <class Collection, class Step>
void scan_collection(const Call& call, Step step) {
  ScanQuery query;
  if (!parse_cursor(call, 2, query.cursor)) return;
  Collection* collection = nullptr;
  if (!read_as(call, call[1], collection)) return;
  if (collection == nullptr) return reply_scan(call, 0, {});
  constexpr Scanned what = std::is_same_v<Collection, Hash>        ? Scanned::hash
                           : std::is_same_v<Collection, SortedSet> ? Scanned::zset
                                                                   : Scanned::set;
  if (!parse_options(call, 3, what, query)) return;
  std::vector<std::string> found;
  const std::uint64_t cursor =
      take_steps(query, found, [&](std::uint64_t at) { return step(*collection, at, query, found); });
  reply_scan(call, cursor, found);
}

void sscan(const Call& call) {
  scan_collection<Set>(call, [](const Set& set, std::uint64_t at, const ScanQuery& query, auto& found) {
    return set.scan(at, [&](std::string_view member) {
      if (matches(query, member)) found.emplace_back(member);
    });
  });
}

void hscan(const Call& call) {
  scan_collection<Hash>(call, [](const Hash& hash, std::uint64_t at, const ScanQuery& query, auto& found) {
    return hash.scan(at, [&](std::string_view field, std::string_view value) {
      if (!matches(query, field)) return;
      found.emplace_back(field);
      if (!query.without_values) found.emplace_back(value);
    });
  });
}

void zscan(const Call& call) {
  scan_collection<SortedSet>(
      call, [](const SortedSet& zset, std::uint64_t at, const ScanQuery& query, auto& found) {
        return zset.scan(at, [&](std::string_view member, double score) {
          if (!matches(query, member)) return;
          found.emplace_back(member);
          if (!query.without_values) found.push_back(format_double(score));
        });
      });
}

}  // namespace

std::span<const Command> scan_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"scan", -2, readonly, 0, 0, 0, scan, "generic", "Walks the keys in steps."},
      {"sscan", -3, readonly, 1, 1, 1, sscan, "set", "Walks a set in steps."},
      {"hscan", -3, readonly, 1, 1, 1, hscan, "hash", "Walks a hash in steps."},
      {"zscan", -3, readonly, 1, 1, 1, zscan, "sorted-set", "Walks a sorted set in steps."},
  };
  return commands;
}

}  // namespace weir::kv
