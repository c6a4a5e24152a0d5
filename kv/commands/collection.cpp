#include "kv/commands/collection.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kv/call/call.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {
Value& place(const Call& call, std::string_view key, Value made) {
  Value& value = call.db.insert(key).value;
  value = std::move(made);
  return value;
}

std::size_t put(const Call& call, std::string_view key, std::size_t size, Value made) {
  const bool had = call.write(key) != nullptr;
  if (had) call.db.erase(key);
  if (size != 0) call.db.insert(key).value = std::move(made);
  if (size != 0) {
    call.changed(key);
  } else if (had) {
    call.changed(key, key_deleted);
  }
  return size;
}
}  // namespace

List& make_list(const Call& call, std::string_view key) { return place(call, key, Value(List())).list(); }
Set& make_set(const Call& call, std::string_view key) { return place(call, key, Value(Set())).set(); }
Hash& make_hash(const Call& call, std::string_view key) { return place(call, key, Value(Hash())).hash(); }
SortedSet& make_zset(const Call& call, std::string_view key) {
  return place(call, key, Value(SortedSet())).zset();
}

std::size_t store_collection(const Call& call, std::string_view key, Set&& set) {
  const std::size_t size = set.size();
  return put(call, key, size, Value(std::move(set)));
}
std::size_t store_collection(const Call& call, std::string_view key, SortedSet&& zset) {
  const std::size_t size = zset.size();
  return put(call, key, size, Value(std::move(zset)));
}

std::vector<std::string> key_names(Arguments keys) {
  std::vector<std::string> names;
  for (const Argument& key : keys) names.emplace_back(key.text);
  return names;
}

SmallLimits hash_limits(const Call& call) {
  const Settings& s = call.server.settings;
  return {static_cast<std::size_t>(s.hash_max_listpack_entries),
          static_cast<std::size_t>(s.hash_max_listpack_value)};
}
SmallLimits zset_limits(const Call& call) {
  const Settings& s = call.server.settings;
  return {static_cast<std::size_t>(s.zset_max_listpack_entries),
          static_cast<std::size_t>(s.zset_max_listpack_value)};
}
SetLimits set_limits(const Call& call) {
  const Settings& s = call.server.settings;
  return {static_cast<std::size_t>(s.set_max_intset_entries),
          {static_cast<std::size_t>(s.set_max_listpack_entries),
           static_cast<std::size_t>(s.set_max_listpack_value)}};
}

NodeLimit node_limit(const Call& call) {
  return NodeLimit::of_setting(call.server.settings.list_max_listpack_size);
}

bool counted_keys(const Call& call, std::size_t& at, Arguments& keys) {
  const CountedKeys counted = counted_keys_in(call.arguments, at);
  if (counted.wrong == CountedKeys::Wrong::too_many) return call.syntax_error(), false;
  if (counted.keys.empty()) return call.reply.error("ERR numkeys should be greater than 0"), false;
  keys = counted.keys;
  at = counted.end;
  return true;
}

bool positive(const Call& call, std::size_t at, std::int64_t& value, std::string_view error) {
  const auto parsed = parse_int(call[at]);
  if (!parsed || *parsed < 0) {
    call.reply.error(error);
    return false;
  }
  value = *parsed;
  return true;
}

bool clamp_range(std::int64_t& start, std::int64_t& stop, std::size_t size) {
  const auto n = static_cast<std::int64_t>(size);
  if (start < 0) start = std::max<std::int64_t>(start + n, 0);
  if (stop < 0) stop += n;
  if (start > stop || start >= n) return false;
  stop = std::min(stop, n - 1);
  return true;
}

bool timeout(const Call& call, std::size_t at, std::int64_t& ms) {
  const auto seconds = parse_long_double(call[at]);
  auto wrong = [&](std::string_view error) {
    call.reply.error(error);
    return false;
  };
  if (!seconds) return wrong("ERR timeout is not a float or out of range");
  const long double exact = std::ceil(*seconds * 1000);
  const auto most = static_cast<long double>(std::numeric_limits<std::int64_t>::max());
  if (exact < 0 || exact > most) return wrong("ERR timeout is negative");
  if (exact > most - static_cast<long double>(call.server.steady_ms)) {
    return wrong("ERR timeout is out of range");
  }
  ms = static_cast<std::int64_t>(exact);
  return true;
}

}  // namespace weir::kv
