#include "kv/commands/field_words.hpp"

#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/effects/effects.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

bool field_time(const Call& call, std::size_t argument, ExpiryForm form, std::int64_t& at_ms) {
  std::int64_t value = 0;
  if (!call.integer(argument, value)) return false;
  if (value < 0) {
    call.reply.error("ERR invalid expire time, must be >= 0");
    return false;
  }
  const std::int64_t scale = form.unit == ExpiryUnit::seconds ? 1000 : 1;
  const std::int64_t base = form.base == ExpiryBase::from_now ? call.now_ms : 0;
  if (value > latest_field_time_ms / scale || value * scale > latest_field_time_ms - base) {
    call.reply.error("ERR invalid expire time in '" + call.command.full_name() + "' command");
    return false;
  }
  at_ms = value * scale + base;
  return true;
}

bool counted_fields(const Call& call, std::size_t at, std::string_view not_positive, Arguments& fields) {
  const auto wrong = [&call](std::string_view error) {
    call.reply.error("ERR " + std::string(error));
    return false;
  };
  if (!is_word(call[at], "FIELDS"))
    return wrong("Mandatory argument FIELDS is missing or not at the right position");
  const auto count = at + 1 < call.count() ? parse_int(call[at + 1]) : std::nullopt;
  if (!count || *count < 1) return wrong(not_positive);
  fields = call.arguments.subspan(at + 2);
  if (static_cast<std::uint64_t>(*count) != fields.size())
    return wrong("The `numfields` parameter must match the number of arguments");
  return true;
}

void fields_deleted(const Call& call, const Hash& hash, std::span<const std::string_view> fields) {
  if (call.heard()) {
    std::vector<RequestWord> words{"HDEL", call[1]};
    words.insert(words.end(), fields.begin(), fields.end());
    call.server.effects.say(call.db.index(), words);
  }
  if (hash.size() != 0) call.db.fields_changed(call[1]);
  settle(call, call[1], hash, {'h', "hdel"});
}

void fields_expire(const Call& call, std::span<const std::string_view> fields, std::int64_t at_ms) {
  if (call.heard()) {
    std::vector<RequestWord> words{"HPEXPIREAT", call[1], at_ms, "FIELDS",
                                   static_cast<std::int64_t>(fields.size())};
    words.insert(words.end(), fields.begin(), fields.end());
    call.server.effects.say(call.db.index(), words);
  }
  call.db.fields_changed(call[1]);
  call.server.arm_timer();
  call.changed(call[1], {'h', "hexpire"});
}

void fields_persist(const Call& call, std::span<const std::string_view> fields) {
  if (call.heard()) {
    std::vector<RequestWord> words{"HPERSIST", call[1], "FIELDS", static_cast<std::int64_t>(fields.size())};
    words.insert(words.end(), fields.begin(), fields.end());
    call.server.effects.say(call.db.index(), words);
  }
  call.db.fields_changed(call[1]);
  call.changed(call[1], {'h', "hpersist"});
}

void set_times(const Call& call, Hash& hash, std::span<const std::string_view> fields, std::int64_t at_ms) {
  if (!call.db.is_past(at_ms, call.now_ms)) {
    for (const std::string_view field : fields) hash.expire_at(field, at_ms);
    return fields_expire(call, fields, at_ms);
  }
  for (const std::string_view field : fields) hash.erase(field);
  call.server.stats.expired_fields += fields.size();
  fields_deleted(call, hash, fields);
}

std::optional<StoredText> living(const Call& call, Hash*& hash, std::string_view field) {
  if (hash == nullptr) return std::nullopt;
  if (!hash->hides(field)) return hash->find(field);
  call.db.expire_field(call[1], field, call.now_ms);
  Record* const record = call.db.records().find(call[1]);
  hash = record == nullptr ? nullptr : &record->value.hash();
  return std::nullopt;
}

}  // namespace weir::kv
