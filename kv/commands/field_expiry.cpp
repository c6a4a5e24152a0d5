// Expiring fields of hashes: the HEXPIRE and HTTL families.
//
// Replies, in the order of the fields: -2 for a field (or a hash) that does not exist, -1 for one that has no
// time, 0 where the condition does not hold, 1 for a change, and 2 for a field that is deleted because the
// time is past.
#include <vector>

#include "kv/call/call.hpp"
#include "kv/commands/collection.hpp"
#include "kv/commands/expiry_option.hpp"
#include "kv/commands/field_words.hpp"

namespace weir::kv {

namespace {

enum class FieldReply : std::int8_t { no_field = -2, no_time = -1, not_allowed = 0, done = 1, deleted = 2 };

enum class Only : std::uint8_t { always, if_none, if_some, if_later, if_sooner };

Only condition(std::string_view word) {
  if (is_word(word, "NX")) return Only::if_none;
  if (is_word(word, "XX")) return Only::if_some;
  if (is_word(word, "GT")) return Only::if_later;
  return is_word(word, "LT") ? Only::if_sooner : Only::always;
}

// A field without time counts as one that expires last.
bool allows(Only only, std::int64_t current_ms, std::int64_t at_ms) {
  const bool expires = current_ms != FieldTimes::never;
  switch (only) {
    case Only::always:
      break;
    case Only::if_none:
      return !expires;
    case Only::if_some:
      return expires;
    case Only::if_later:
      return expires && at_ms > current_ms;
    case Only::if_sooner:
      return !expires || at_ms < current_ms;
  }
  return true;
}

FieldReply expire_field(Hash& hash, std::string_view field, Only only, std::int64_t at_ms, bool is_past) {
  if (!hash.find(field)) return FieldReply::no_field;
  if (!allows(only, hash.time_of(field), at_ms)) return FieldReply::not_allowed;
  if (is_past) {
    hash.erase(field);
    return FieldReply::deleted;
  }
  hash.expire_at(field, at_ms);
  return FieldReply::done;
}

void expire_fields(const Call& call, ExpiryForm form) {
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  std::int64_t at_ms = 0;
  if (!field_time(call, 2, form, at_ms)) return;
  const Only only = condition(call[3]);
  Arguments fields;
  if (!counted_fields(call, only == Only::always ? 3 : 4, "Parameter `numFields` should be greater than 0",
                      fields))
    return;
  const bool is_past = call.db.is_past(at_ms, call.now_ms);
  std::vector<std::string_view> changed;
  call.reply.array(fields.size());
  for (const Argument& field : fields) {
    const FieldReply result =
        hash == nullptr ? FieldReply::no_field : expire_field(*hash, field.text, only, at_ms, is_past);
    call.reply.integer(static_cast<std::int64_t>(result));
    if (result == FieldReply::done || result == FieldReply::deleted) changed.push_back(field.text);
  }
  if (changed.empty()) return;
  if (is_past) {
    call.server.stats.expired_fields += changed.size();
    fields_deleted(call, *hash, changed);
  } else {
    fields_expire(call, changed, at_ms);
  }
}

void hexpire(const Call& call) { expire_fields(call, {ExpiryUnit::seconds, ExpiryBase::from_now}); }
void hpexpire(const Call& call) { expire_fields(call, {ExpiryUnit::milliseconds, ExpiryBase::from_now}); }
void hexpireat(const Call& call) { expire_fields(call, {ExpiryUnit::seconds, ExpiryBase::absolute}); }
void hpexpireat(const Call& call) { expire_fields(call, {ExpiryUnit::milliseconds, ExpiryBase::absolute}); }

constexpr std::string_view not_positive = "Number of fields must be a positive integer";

void reply_times(const Call& call, ExpiryForm form) {
  Hash* hash = nullptr;
  if (!read_as(call, call[1], hash)) return;
  Arguments fields;
  if (!counted_fields(call, 2, not_positive, fields)) return;
  const std::int64_t base = form.base == ExpiryBase::from_now ? call.now_ms : 0;
  call.reply.array(fields.size());
  for (const Argument& field : fields) {
    if (hash == nullptr || !hash->find(field.text)) {
      call.reply.integer(static_cast<std::int64_t>(FieldReply::no_field));
      continue;
    }
    const std::int64_t at_ms = hash->time_of(field.text);
    if (at_ms == FieldTimes::never) {
      call.reply.integer(static_cast<std::int64_t>(FieldReply::no_time));
    } else {
      call.reply.integer(form.unit == ExpiryUnit::seconds ? (at_ms + 999 - base) / 1000 : at_ms - base);
    }
  }
}

void httl(const Call& call) { reply_times(call, {ExpiryUnit::seconds, ExpiryBase::from_now}); }
void hpttl(const Call& call) { reply_times(call, {ExpiryUnit::milliseconds, ExpiryBase::from_now}); }
void hexpiretime(const Call& call) { reply_times(call, {ExpiryUnit::seconds, ExpiryBase::absolute}); }
void hpexpiretime(const Call& call) { reply_times(call, {ExpiryUnit::milliseconds, ExpiryBase::absolute}); }

FieldReply persist_field(Hash& hash, std::string_view field) {
  if (!hash.find(field)) return FieldReply::no_field;
  return hash.persist(field) ? FieldReply::done : FieldReply::no_time;
}

void hpersist(const Call& call) {
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  Arguments fields;
  if (!counted_fields(call, 2, not_positive, fields)) return;
  std::vector<std::string_view> changed;
  call.reply.array(fields.size());
  for (const Argument& field : fields) {
    const FieldReply result = hash == nullptr ? FieldReply::no_field : persist_field(*hash, field.text);
    call.reply.integer(static_cast<std::int64_t>(result));
    if (result == FieldReply::done) changed.push_back(field.text);
  }
  if (!changed.empty()) fields_persist(call, changed);
}

}  // namespace

std::span<const Command> field_expiry_commands() {
  using namespace flag;
  constexpr std::uint32_t change = write | denyoom | fast;
  constexpr std::uint32_t look = readonly | fast;
  static constexpr Command commands[] = {
      {"hexpire", -6, change, 1, 1, 1, hexpire, "hash", "Sets fields' time to live in seconds."},
      {"hpexpire", -6, change, 1, 1, 1, hpexpire, "hash", "Sets fields' time to live in milliseconds."},
      {"hexpireat", -6, change, 1, 1, 1, hexpireat, "hash",
       "Sets when fields expire, in seconds since 1970."},
      {"hpexpireat", -6, change, 1, 1, 1, hpexpireat, "hash", "Sets when fields expire, in ms since 1970."},
      {"httl", -5, look, 1, 1, 1, httl, "hash", "Returns fields' time to live in seconds."},
      {"hpttl", -5, look, 1, 1, 1, hpttl, "hash", "Returns fields' time to live in milliseconds."},
      {"hexpiretime", -5, look, 1, 1, 1, hexpiretime, "hash", "Returns when fields expire, in seconds."},
      {"hpexpiretime", -5, look, 1, 1, 1, hpexpiretime, "hash", "Returns when fields expire, in ms."},
      {"hpersist", -5, write | fast, 1, 1, 1, hpersist, "hash", "Makes fields stay."},
  };
  return commands;
}

}  // namespace weir::kv
