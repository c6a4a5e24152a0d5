// Strings: setting and reading whole values and parts of them.
#include <algorithm>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/expiry_option.hpp"
#include "kv/commands/string_options.hpp"
#include "kv/commands/string_value.hpp"
#include "kv/settings/deletion_word.hpp"

namespace weir::kv {

void store_text(const Call& call, Record*& record, std::string_view key, const Argument& value) {
  if (record == nullptr)
    record = &call.db.insert(key);
  else if (record->value.type() != Type::string)
    call.db.drop_value(*record);
  if (value.block != nullptr) {
    record->value = Value(Bytes(BlobRef::share(value.block)));
  } else {
    record->value.assign(value.text);
  }
}

bool fits_string(const Call& call, std::size_t size, std::size_t more) {
  if (size + more <= static_cast<std::size_t>(call.server.settings.proto_max_bulk_len) &&
      size + more >= size) {
    return true;
  }
  call.reply.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  return false;
}

namespace {

void reply_text(const Call& call, const Record* record) {
  if (record == nullptr) return call.reply.null();
  call.reply.bulk(record->value.text());
}

// Whether the condition of SET holds for what the key holds.
bool meets(const Call& call, const StringOptions& options, const Record* record) {
  using enum StringOptions::Exists;
  if (options.exists == must_not) return record == nullptr;
  if (options.exists == must) return record != nullptr;
  return options.equal_at == 0 || (record != nullptr && record->value.text() == call[options.equal_at]);
}

void set(const Call& call) {
  StringOptions options;
  if (call.count() > 3 && !parse_string_options(call, 3, OptionsFor::one_key, options))
    return call.syntax_error();
  std::int64_t expires_at_ms = Record::never;
  if (options.expires && !expiry_time(call, options.time_at, options.form, expires_at_ms)) return;
  const std::string_view key = call[1];
  Record* record = call.write(key);
  const bool compares = options.equal_at != 0;
  if ((options.get || compares) && !call.typed(record, Type::string)) return;
  if (options.get) reply_text(call, record);
  if (!meets(call, options, record)) {
    if (!options.get) call.reply.null();
    return;
  }
  store_text(call, record, key, call.arguments[2]);
  if (expires_at_ms != Record::never) {
    call.db.set_expiry(*record, expires_at_ms);
    call.server.arm_timer();
    call.replay_as({"SET", key, call.arguments[2], "PXAT", expires_at_ms});
  } else if (!options.keep_ttl) {
    call.db.clear_expiry(*record);
    if (compares) call.replay_as({"SET", key, call.arguments[2]});
  } else if (compares) {
    call.replay_as({"SET", key, call.arguments[2], "KEEPTTL"});
  }
  call.changed(key);
  if (expires_at_ms != Record::never) call.notify(key, expiry_set);
  if (!options.get) call.reply.ok();
}

void set_if_new(const Call& call) {
  Record* record = call.write(call[1]);
  if (record != nullptr) return call.reply.integer(0);
  store_text(call, record, call[1], call.arguments[2]);
  call.changed(call[1]);
  call.reply.integer(1);
}

void set_expiring(const Call& call, ExpiryUnit unit) {
  std::int64_t expires_at_ms = 0;
  if (!expiry_time(call, 2, {unit, ExpiryBase::from_now}, expires_at_ms)) return;
  Record* record = call.write(call[1]);
  store_text(call, record, call[1], call.arguments[3]);
  call.db.set_expiry(*record, expires_at_ms);
  call.server.arm_timer();
  call.replay_as({"SET", call[1], call.arguments[3], "PXAT", expires_at_ms});
  call.changed(call[1]);
  call.notify(call[1], expiry_set);
  call.reply.ok();
}
void setex(const Call& call) { set_expiring(call, ExpiryUnit::seconds); }
void psetex(const Call& call) { set_expiring(call, ExpiryUnit::milliseconds); }

void get(const Call& call) {
  const Record* record = call.read(call[1]);
  if (call.typed(record, Type::string)) reply_text(call, record);
}

void getdel(const Call& call) {
  const Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  reply_text(call, record);
  if (record == nullptr) return;
  call.replay_as({"DEL", call[1]});
  call.erase(call[1]);
}

void delete_if_equal(const Call& call) {
  const Record* record = call.write(call[1]);
  if (!call.typed(record, Type::string)) return;
  if (record == nullptr || record->value.text() != call[2]) return call.reply.integer(0);
  call.replay_as({"DEL", call[1]});
  call.erase(call[1]);
  call.reply.integer(1);
}

void getset(const Call& call) {
  Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  reply_text(call, record);
  store_text(call, record, call[1], call.arguments[2]);
  call.db.clear_expiry(*record);
  call.replay_as({"SET", call[1], call.arguments[2]});
  call.changed(call[1]);
}

void getex(const Call& call) {
  bool persist = false;
  bool expires = false;
  ExpiryForm form{};
  if (call.count() == 3 && is_word(call[2], "PERSIST")) {
    persist = true;
  } else if (call.count() == 4 && expiry_form(call[2], form)) {
    expires = true;
  } else if (call.count() != 2) {
    return call.syntax_error();
  }
  std::int64_t at_ms = Record::never;
  if (expires && !expiry_time(call, 3, form, at_ms)) return;
  Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  if (record == nullptr) return call.reply.null();
  reply_text(call, record);
  if (expires && call.db.is_past(at_ms, call.now_ms)) {
    call.replay_as({deletion_word(call.server.settings.lazyfree_lazy_expire), call[1]});
    call.erase(call[1]);
  } else if (expires) {
    call.replay_as({"PEXPIREAT", call[1], at_ms});
    call.db.set_expiry(*record, at_ms);
    call.server.arm_timer();
    call.changed(call[1], expiry_set);
  } else if (persist && record->expires_at_ms != Record::never) {
    call.db.clear_expiry(*record);
    call.replay_as({"PERSIST", call[1]});
    call.changed(call[1], expiry_removed);
  }
}

void append(const Call& call) {
  Record* record = call.write(call[1]);
  if (!call.typed(record, Type::string)) return;
  if (record == nullptr) {
    store_text(call, record, call[1], call.arguments[2]);
  } else {
    Bytes& text = record->value.text();
    if (!fits_string(call, text.size(), call[2].size())) return;
    text.append(call[2]);
    record->value.mark(Value::Made::edited);
  }
  call.changed(call[1]);
  call.reply.integer(static_cast<std::int64_t>(record->value.text().size()));
}

void strlen(const Call& call) {
  const Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  call.reply.integer(record == nullptr ? 0 : static_cast<std::int64_t>(record->value.text().size()));
}

void setrange(const Call& call) {
  std::int64_t offset = 0;
  if (!call.integer(2, offset)) return;
  if (offset < 0) return call.reply.error("ERR offset is out of range");
  Record* record = call.write(call[1]);
  if (!call.typed(record, Type::string)) return;
  const std::string_view part = call[3];
  const std::size_t size = record == nullptr ? 0 : record->value.text().size();
  if (part.empty()) return call.reply.integer(static_cast<std::int64_t>(size));
  const auto from = static_cast<std::size_t>(offset);
  if (!fits_string(call, from, part.size())) return;
  if (record == nullptr) record = &call.db.insert(call[1]);
  Bytes& text = record->value.text();
  char* bytes = text.grow_zeroed(std::max(size, from + part.size()));
  std::copy(part.begin(), part.end(), bytes + from);
  record->value.mark(Value::Made::edited);
  call.changed(call[1]);
  call.reply.integer(static_cast<std::int64_t>(text.size()));
}

void getrange(const Call& call) {
  std::int64_t start = 0;
  std::int64_t end = 0;
  if (!call.integer(2, start) || !call.integer(3, end)) return;
  const Record* record = call.read(call[1]);
  if (!call.typed(record, Type::string)) return;
  if (record == nullptr) return call.reply.bulk(std::string_view());
  const std::string_view text = record->value.text().view();
  const auto size = static_cast<std::int64_t>(text.size());
  if (start < 0 && end < 0 && start > end) return call.reply.bulk(std::string_view());
  if (start < 0) start = std::max<std::int64_t>(size + start, 0);
  if (end < 0) end = std::max<std::int64_t>(size + end, 0);
  end = std::min(end, size - 1);
  if (start > end || size == 0) return call.reply.bulk(std::string_view());
  call.reply.bulk(text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start + 1)));
}

}  // namespace

std::span<const Command> string_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"set", -3, write | denyoom, 1, 1, 1, set, "string",
       "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist."},
      {"setnx", 3, write | denyoom | fast, 1, 1, 1, set_if_new, "string",
       "Sets a string unless the key exists."},
      {"setex", 4, write | denyoom, 1, 1, 1, setex, "string",
       "Sets a string and its time to live in seconds."},
      {"psetex", 4, write | denyoom, 1, 1, 1, psetex, "string",
       "Sets a string and its time to live in milliseconds."},
      {"get", 2, readonly | fast, 1, 1, 1, get, "string", "Returns the string at a key."},
      {"delifeq", 3, write | fast, 1, 1, 1, delete_if_equal, "string",
       "Deletes a string if it is equal to another."},
      {"getdel", 2, write | fast, 1, 1, 1, getdel, "string",
       "Returns the string at a key and deletes the key."},
      {"getex", -2, write | fast, 1, 1, 1, getex, "string",
       "Returns the string at a key and sets its expiry."},
      {"getset", 3, write | denyoom | fast, 1, 1, 1, getset, "string",
       "Sets a string and returns the one before."},
      {"append", 3, write | denyoom | fast, 1, 1, 1, append, "string", "Appends to the string at a key."},
      {"strlen", 2, readonly | fast, 1, 1, 1, strlen, "string", "Returns the length of the string at a key."},
      {"setrange", 4, write | denyoom, 1, 1, 1, setrange, "string",
       "Overwrites a part of the string at a key."},
      {"getrange", 4, readonly, 1, 1, 1, getrange, "string", "Returns a part of the string at a key."},
      {"substr", 4, readonly, 1, 1, 1, getrange, "string", "Returns a part of the string at a key."},
  };
  return commands;
}

}  // namespace weir::kv
