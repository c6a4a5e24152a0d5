// Hashes: fields and values under one key.
#include <absl/container/flat_hash_set.h>

#include <cmath>
#include <string>

#include "kv/commands/collection.hpp"
#include "kv/commands/random_choice.hpp"
#include "kv/number.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

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
  for (std::size_t i = 2; i < call.count(); i += 2) {
    created += hash->set(call[i], kept(call.arguments[i + 1]), hash_limits(call)) ? 1 : 0;
  }
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
  if (hash != nullptr && hash->find(call[2]) != nullptr) return call.reply.integer(0);
  if (hash == nullptr) hash = &make_hash(call, call[1]);
  hash->set(call[2], kept(call.arguments[3]), hash_limits(call));
  call.changed(call[1]);
  call.reply.integer(1);
}

void hget(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  const Bytes* value = hash == nullptr ? nullptr : hash->find(call[2]);
  value == nullptr ? call.reply.null() : call.reply.bulk(*value);
}

void hmget(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i) {
    const Bytes* value = hash == nullptr ? nullptr : hash->find(call[i]);
    value == nullptr ? call.reply.null() : call.reply.bulk(*value);
  }
}

void hgetall(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.map(hash == nullptr ? 0 : hash->size());
  if (hash == nullptr) return;
  hash->for_each([&](std::string_view field, const Bytes& value) {
    call.reply.bulk(field);
    call.reply.bulk(value);
  });
}

void hkeys(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.array(hash == nullptr ? 0 : hash->size());
  if (hash != nullptr) hash->for_each([&](std::string_view field, const Bytes&) { call.reply.bulk(field); });
}

void hvals(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.array(hash == nullptr ? 0 : hash->size());
  if (hash != nullptr) hash->for_each([&](std::string_view, const Bytes& value) { call.reply.bulk(value); });
}

void hlen(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.integer(hash == nullptr ? 0 : static_cast<std::int64_t>(hash->size()));
}

void hexists(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  call.reply.integer(hash != nullptr && hash->find(call[2]) != nullptr ? 1 : 0);
}

void hstrlen(const Call& call) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  const Bytes* value = hash == nullptr ? nullptr : hash->find(call[2]);
  call.reply.integer(value == nullptr ? 0 : static_cast<std::int64_t>(value->size()));
}

void hdel(const Call& call) {
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  if (hash == nullptr) return call.reply.integer(0);
  std::int64_t deleted = 0;
  for (std::size_t i = 2; i < call.count(); ++i) deleted += hash->erase(call[i]) ? 1 : 0;
  if (deleted != 0) settle(call, call[1], *hash);
  call.reply.integer(deleted);
}

void hincrby(const Call& call) {
  std::int64_t difference = 0;
  if (!call.integer(3, difference)) return;
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  const Bytes* old = hash == nullptr ? nullptr : hash->find(call[2]);
  std::int64_t value = 0;
  if (old != nullptr) {
    const auto number = parse_int(old->view());
    if (!number) return call.reply.error("ERR hash value is not an integer");
    value = *number;
  }
  if (__builtin_add_overflow(value, difference, &value)) {
    return call.reply.error("ERR increment or decrement would overflow");
  }
  if (hash == nullptr) hash = &make_hash(call, call[1]);
  IntText text;
  hash->set(call[2], Bytes(format_int(value, text)), hash_limits(call));
  call.changed(call[1]);
  call.reply.integer(value);
}

void hincrbyfloat(const Call& call) {
  const auto difference = parse_long_double(call[3]);
  if (!difference) return call.reply.error("ERR value is not a valid float");
  if (std::isinf(*difference)) return call.reply.error("ERR value is NaN or Infinity");
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  const Bytes* old = hash == nullptr ? nullptr : hash->find(call[2]);
  const auto before = old == nullptr ? 0.0L : parse_long_double(old->view());
  if (!before) return call.reply.error("ERR hash value is not a float");
  const long double value = *before + *difference;
  if (std::isnan(value) || std::isinf(value))
    return call.reply.error("ERR increment would produce NaN or Infinity");
  if (hash == nullptr) hash = &make_hash(call, call[1]);
  const std::string text = format_long_double_human(value);
  hash->set(call[2], Bytes(text), hash_limits(call));
  call.replay_as({"HSET", call[1], call[2], text});
  call.changed(call[1]);
  call.reply.bulk(text);
}

void reply_field(const Call& call, std::string_view field, const Bytes& value, bool with_values) {
  if (with_values && call.reply.resp3()) call.reply.array(2);
  call.reply.bulk(field);
  if (with_values) call.reply.bulk(value);
}

void hrandfield(const Call& call) {
  RandomChoice choice;
  if (!parse_random_choice(call, "WITHVALUES", choice)) return;
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  auto random = [&] { return call.server.random(); };
  if (!choice.counted) {
    if (hash == nullptr) return call.reply.null();
    return call.reply.bulk(hash->sample(random).first);
  }
  if (hash == nullptr || choice.count == 0) return call.reply.array(0);
  auto header = [&](std::size_t n) {
    call.reply.array(choice.with_values && !call.reply.resp3() ? n * 2 : n);
  };
  if (choice.repeat) {
    header(choice.count);
    for (std::size_t i = 0; i < choice.count; ++i) {
      const auto [field, value] = hash->sample(random);
      reply_field(call, field, *value, choice.with_values);
    }
    return;
  }
  const auto all = [&] {
    std::vector<std::pair<std::string_view, const Bytes*>> fields;
    hash->for_each([&](std::string_view field, const Bytes& value) { fields.emplace_back(field, &value); });
    return fields;
  };
  const auto chosen = choose_different<absl::flat_hash_set<const Bytes*>>(
      hash->size(), choice.count, [&] { return hash->sample(random); },
      [](const auto& one) { return one.second; }, all, random);
  header(chosen.size());
  for (const auto& [field, value] : chosen) reply_field(call, field, *value, choice.with_values);
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
