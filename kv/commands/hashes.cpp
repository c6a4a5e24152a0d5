// Hashes: fields and values under one key.
#include <absl/container/flat_hash_set.h>

#include <cmath>
#include <string>

#include "kv/call/call.hpp"
#include "kv/commands/collection.hpp"
#include "kv/commands/field_words.hpp"
#include "kv/commands/random_choice.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

// A change may have taken the hash its last time.
void index_again(const Call& call, const Hash& hash, bool had_times) {
  if (had_times && hash.times() == nullptr) call.db.fields_changed(call[1]);
}

// Sets the pairs and returns how many fields are new, -1 when the client was answered an error.
std::int64_t set_pairs(const Call& call) {
  if (call.count() % 2 != 0) {
    call.reply.error("ERR wrong number of arguments for '" + call.command.full_name() + "' command");
    return -1;
  }
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return -1;
  if (hash == nullptr) hash = &make_hash(call, call[1]);
  std::int64_t created = 0;
  const bool had_times = hash->times() != nullptr;
  for (std::size_t i = 2; i < call.count(); i += 2) {
    created += hash->set(call[i], given(call.arguments[i + 1]), hash_limits(call)) ? 1 : 0;
  }
  index_again(call, *hash, had_times);
  call.changed(call[1]);
  return created;
}

void hset(const Call& call) {
  if (const std::int64_t created = set_pairs(call); created >= 0) call.reply.integer(created);
}
void hmset(const Call& call) {
  if (set_pairs(call) >= 0) call.reply.ok();
}

void hsetnx(const Call& call) {
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  if (living(call, hash, call[2])) return call.reply.integer(0);
  if (hash == nullptr) hash = &make_hash(call, call[1]);
  hash->set(call[2], given(call.arguments[3]), hash_limits(call));
  call.changed(call[1]);
  call.reply.integer(1);
}

void hget(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  const auto value = living(call, hash, call[2]);
  value ? reply_text(call, *value) : call.reply.null();
}

void hmget(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i) {
    const auto value = living(call, hash, call[i]);
    value ? reply_text(call, *value) : call.reply.null();
  }
}

void hgetall(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.map(hash == nullptr ? 0 : hash->shown());
  if (hash == nullptr) return;
  hash->for_each([&](std::string_view field, const StoredText& value) {
    call.reply.bulk(field);
    reply_text(call, value);
  });
}

void hkeys(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.array(hash == nullptr ? 0 : hash->shown());
  if (hash != nullptr)
    hash->for_each([&](std::string_view field, const StoredText&) { call.reply.bulk(field); });
}

void hvals(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.array(hash == nullptr ? 0 : hash->shown());
  if (hash != nullptr)
    hash->for_each([&](const StoredText&, const StoredText& value) { reply_text(call, value); });
}

void hlen(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.integer(hash == nullptr ? 0 : static_cast<std::int64_t>(hash->size()));
}

void hexists(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.integer(living(call, hash, call[2]) ? 1 : 0);
}

void hstrlen(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  const auto value = living(call, hash, call[2]);
  call.reply.integer(value ? static_cast<std::int64_t>(value->view().size()) : 0);
}

void hdel(const Call& call) {
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  if (hash == nullptr) return call.reply.integer(0);
  std::int64_t deleted = 0;
  const bool had_times = hash->times() != nullptr;
  for (std::size_t i = 2; i < call.count(); ++i) deleted += hash->erase(call[i]) ? 1 : 0;
  index_again(call, *hash, had_times);
  if (deleted != 0) settle(call, call[1], *hash);
  call.reply.integer(deleted);
}

void hincrby(const Call& call) {
  std::int64_t difference = 0;
  if (!call.integer(3, difference)) return;
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  const auto old = living(call, hash, call[2]);
  std::int64_t value = 0;
  if (old) {
    const auto number = parse_int(old->view());
    if (!number) return call.reply.error("ERR hash value is not an integer");
    value = *number;
  }
  if (__builtin_add_overflow(value, difference, &value)) {
    return call.reply.error("ERR increment or decrement would overflow");
  }
  if (hash == nullptr) hash = &make_hash(call, call[1]);
  IntText text;
  hash->update(call[2], format_int(value, text), hash_limits(call));
  call.changed(call[1]);
  call.reply.integer(value);
}

void hincrbyfloat(const Call& call) {
  const auto difference = parse_long_double(call[3]);
  if (!difference) return call.reply.error("ERR value is not a valid float");
  if (std::isinf(*difference)) return call.reply.error("ERR value is NaN or Infinity");
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  const auto old = living(call, hash, call[2]);
  const auto before = old ? parse_long_double(old->view()) : 0.0L;
  if (!before) return call.reply.error("ERR hash value is not a float");
  const long double value = *before + *difference;
  if (std::isnan(value) || std::isinf(value))
    return call.reply.error("ERR increment would produce NaN or Infinity");
  if (hash == nullptr) hash = &make_hash(call, call[1]);
  const std::string text = format_long_double_human(value);
  hash->update(call[2], std::string_view(text), hash_limits(call));
  call.replay_as({"HSET", call[1], call[2], text});
  if (const std::int64_t at_ms = hash->time_of(call[2]); at_ms != FieldTimes::never)
    call.replay_as({"HPEXPIREAT", call[1], at_ms, "FIELDS", "1", call[2]});
  call.changed(call[1]);
  call.reply.bulk(text);
}

std::vector<Hash::Pair> pairs_of(const Hash& hash) {
  std::vector<Hash::Pair> pairs;
  pairs.reserve(hash.shown());
  hash.for_each([&](const StoredText& field, const StoredText& value) { pairs.push_back({field, value}); });
  return pairs;
}

// Whether it takes a list of all fields to draw one.
bool draws_from_list(const Hash& hash) { return hash.small() || hash.hides_any(); }

// The hash to draw fields from, rid of fields whose time has come, as far as that takes no longer than other
// commands do.
bool read_living(const Call& call, Hash*& hash) {
  constexpr std::size_t at_once = 1000;
  if (!read_as(call, call[1], hash)) return false;
  if (hash == nullptr || !hash->hides_any()) return true;
  call.db.expire_fields(call[1], call.now_ms, at_once);
  if (!write_as(call, call[1], hash)) return false;
  if (hash != nullptr && hash->shown() == 0) hash = nullptr;
  return true;
}

// Those of a small hash are found from its beginning on, so they are drawn from a list of them all.
template <class Random>
std::vector<Hash::Pair> different_pairs(const Hash& hash, std::size_t count, Random random) {
  const std::size_t draws_among = draws_from_list(hash) ? 0 : hash.size();
  return choose_different<absl::flat_hash_set<const char*>>(
      draws_among, count, [&] { return hash.sample(random); },
      [](const Hash::Pair& one) { return one.field.view().data(); }, [&] { return pairs_of(hash); }, random);
}

void hrandfield(const Call& call) {
  RandomChoice choice;
  if (!parse_random_choice(call, "WITHVALUES", choice)) return;
  Hash* hash = nullptr;
  if (!read_living(call, hash)) return;
  auto random = [&] { return call.server.random(); };
  if (!choice.counted) {
    if (hash == nullptr) return call.reply.null();
    if (!hash->hides_any()) return call.reply.bulk(hash->sample(random).field);
    const std::vector<Hash::Pair> all = pairs_of(*hash);
    return call.reply.bulk(all[random() % all.size()].field);
  }
  if (hash == nullptr || choice.count == 0) return call.reply.array(0);
  const bool nested = choice.with_values && call.reply.resp3();
  const auto header = [&](std::size_t n) { call.reply.array(choice.with_values && !nested ? n * 2 : n); };
  const auto say = [&](const Hash::Pair& pair) {
    if (nested) call.reply.array(2);
    call.reply.bulk(pair.field);
    if (choice.with_values) reply_text(call, pair.value);
  };
  if (choice.repeat) {
    header(choice.count);
    const std::vector<Hash::Pair> few = draws_from_list(*hash) ? pairs_of(*hash) : std::vector<Hash::Pair>();
    for (std::size_t i = 0; i < choice.count; ++i)
      say(few.empty() ? hash->sample(random) : few[random() % few.size()]);
    return;
  }
  const std::vector<Hash::Pair> chosen = different_pairs(*hash, choice.count, random);
  header(chosen.size());
  for (const Hash::Pair& pair : chosen) say(pair);
}

}  // namespace

std::span<const Command> hash_commands() {
  using namespace flag;
  constexpr std::uint32_t change = write | denyoom | fast;
  constexpr std::uint32_t look = readonly | fast;
  static constexpr Command commands[] = {
      {"hset", -4, change, 1, 1, 1, hset, "hash", "Sets fields of a hash."},
      {"hmset", -4, change, 1, 1, 1, hmset, "hash", "Sets fields of a hash."},
      {"hsetnx", 4, change, 1, 1, 1, hsetnx, "hash", "Sets a field unless it exists."},
      {"hget", 3, look, 1, 1, 1, hget, "hash", "Returns a field's value."},
      {"hmget", -3, look, 1, 1, 1, hmget, "hash", "Returns several fields' values."},
      {"hgetall", 2, readonly, 1, 1, 1, hgetall, "hash", "Returns all fields and values."},
      {"hkeys", 2, readonly, 1, 1, 1, hkeys, "hash", "Returns all fields."},
      {"hvals", 2, readonly, 1, 1, 1, hvals, "hash", "Returns all values."},
      {"hlen", 2, look, 1, 1, 1, hlen, "hash", "Returns the number of fields."},
      {"hexists", 3, look, 1, 1, 1, hexists, "hash", "Says whether a field exists."},
      {"hstrlen", 3, look, 1, 1, 1, hstrlen, "hash", "Returns the length of a field's value."},
      {"hdel", -3, write | fast, 1, 1, 1, hdel, "hash", "Deletes fields."},
      {"hincrby", 4, change, 1, 1, 1, hincrby, "hash", "Adds to the integer in a field."},
      {"hincrbyfloat", 4, change, 1, 1, 1, hincrbyfloat, "hash", "Adds to the number in a field."},
      {"hrandfield", -2, readonly, 1, 1, 1, hrandfield, "hash", "Returns random fields."},
  };
  return commands;
}

}  // namespace weir::kv
