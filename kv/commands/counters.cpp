// Strings as numbers: the INCR family.
#include <cmath>
#include <limits>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

void add(const Call& call, std::int64_t difference) {
  const std::string_view key = call[1];
  Record* record = call.write(key);
  if (!call.typed(record, Type::string)) return;
  std::int64_t value = 0;
  if (record != nullptr) {
    const auto old = parse_int(record->value.text().view());
    if (!old) return call.reply.error("ERR value is not an integer or out of range");
    value = *old;
  }
  if (__builtin_add_overflow(value, difference, &value)) {
    return call.reply.error("ERR increment or decrement would overflow");
  }
  IntText text;
  if (record == nullptr) record = &call.db.insert(key);
  record->value.assign(format_int(value, text));
  call.changed(key);
  call.reply.integer(value);
}

void incr(const Call& call) { add(call, 1); }
void decr(const Call& call) { add(call, -1); }
void incrby(const Call& call) {
  std::int64_t difference = 0;
  if (call.integer(2, difference)) add(call, difference);
}
void decrby(const Call& call) {
  std::int64_t difference = 0;
  if (!call.integer(2, difference)) return;
  if (difference == std::numeric_limits<std::int64_t>::min()) {
    return call.reply.error("ERR decrement would overflow");
  }
  add(call, -difference);
}

void incrbyfloat(const Call& call) {
  const std::string_view key = call[1];
  Record* record = call.write(key);
  if (!call.typed(record, Type::string)) return;
  const auto old = record == nullptr ? 0.0L : parse_long_double(record->value.text().view());
  const auto difference = old ? parse_long_double(call[2]) : old;
  if (!difference) return call.reply.error("ERR value is not a valid float");
  const long double value = *old + *difference;
  if (std::isnan(value) || std::isinf(value)) {
    return call.reply.error("ERR increment would produce NaN or Infinity");
  }
  const std::string text = format_long_double_human(value);
  if (record == nullptr) record = &call.db.insert(key);
  record->value.assign(text);
  record->value.mark(Value::Made::computed);
  call.replay_as({"SET", key, text, "KEEPTTL"});
  call.changed(key);
  call.reply.bulk(text);
}

}  // namespace

std::span<const Command> counter_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"incr", 2, write | denyoom | fast, 1, 1, 1, incr, "string", "Adds one to the integer at a key."},
      {"decr", 2, write | denyoom | fast, 1, 1, 1, decr, "string", "Takes one from the integer at a key."},
      {"incrby", 3, write | denyoom | fast, 1, 1, 1, incrby, "string",
       "Adds a number to the integer at a key."},
      {"decrby", 3, write | denyoom | fast, 1, 1, 1, decrby, "string",
       "Takes a number from the integer at a key."},
      {"incrbyfloat", 3, write | denyoom | fast, 1, 1, 1, incrbyfloat, "string",
       "Adds to the number at a key."},
  };
  return commands;
}

}  // namespace weir::kv
