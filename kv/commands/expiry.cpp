// Expiring keys: the EXPIRE and TTL families.
#include <limits>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/expiry_option.hpp"
#include "kv/settings/deletion_word.hpp"

namespace weir::kv {

namespace {

struct Conditions {
  bool if_none = false, if_some = false, if_later = false, if_sooner = false;
};

bool parse_conditions(const Call& call, Conditions& only) {
  for (std::size_t i = 3; i < call.count(); ++i) {
    if (is_word(call[i], "NX")) {
      only.if_none = true;
    } else if (is_word(call[i], "XX")) {
      only.if_some = true;
    } else if (is_word(call[i], "GT")) {
      only.if_later = true;
    } else if (is_word(call[i], "LT")) {
      only.if_sooner = true;
    } else {
      call.reply.error("ERR Unsupported option " + std::string(up_to_zero(call[i])));
      return false;
    }
  }
  if (only.if_none && (only.if_some || only.if_later || only.if_sooner)) {
    call.reply.error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return false;
  }
  if (only.if_later && only.if_sooner) {
    call.reply.error("ERR GT and LT options at the same time are not compatible");
    return false;
  }
  return true;
}

// Unlike expiry_time(), this accepts times in the past.
bool any_time(const Call& call, ExpiryForm form, std::int64_t& at_ms) {
  using Limits = std::numeric_limits<std::int64_t>;
  std::int64_t value = 0;
  if (!call.integer(2, value)) return false;
  const std::int64_t scale = form.unit == ExpiryUnit::seconds ? 1000 : 1;
  const std::int64_t base = form.base == ExpiryBase::from_now ? call.now_ms : 0;
  if (value > Limits::max() / scale || value < Limits::min() / scale ||
      value * scale > Limits::max() - base) {
    call.reply.error("ERR invalid expire time in '" + call.command.full_name() + "' command");
    return false;
  }
  at_ms = value * scale + base;
  return true;
}

bool allows(const Conditions& only, std::int64_t current_ms, std::int64_t at_ms) {
  const bool expires = current_ms != Record::never;
  if (only.if_none && expires) return false;
  if (only.if_some && !expires) return false;
  if (only.if_later && (!expires || at_ms <= current_ms)) return false;
  return !(only.if_sooner && expires && at_ms >= current_ms);
}

void expire_key(const Call& call, ExpiryForm form) {
  Conditions only;
  if (!parse_conditions(call, only)) return;
  std::int64_t at_ms = 0;
  if (!any_time(call, form, at_ms)) return;
  Record* record = call.write(call[1]);
  if (record == nullptr || !allows(only, record->expires_at_ms, at_ms)) return call.reply.integer(0);
  if (call.db.is_past(at_ms, call.now_ms)) {
    call.replay_as({deletion_word(call.server.settings.lazyfree_lazy_expire), call[1]});
    call.erase(call[1]);
    ++call.server.stats.expired;
  } else {
    call.replay_as({"PEXPIREAT", call[1], at_ms});
    call.db.set_expiry(*record, at_ms);
    call.server.arm_timer();
    call.changed(call[1]);
  }
  call.reply.integer(1);
}

void expire(const Call& call) { expire_key(call, {ExpiryUnit::seconds, ExpiryBase::from_now}); }
void pexpire(const Call& call) { expire_key(call, {ExpiryUnit::milliseconds, ExpiryBase::from_now}); }
void expireat(const Call& call) { expire_key(call, {ExpiryUnit::seconds, ExpiryBase::absolute}); }
void pexpireat(const Call& call) { expire_key(call, {ExpiryUnit::milliseconds, ExpiryBase::absolute}); }

void reply_expiry(const Call& call, ExpiryForm form) {
  const Record* record = call.look(call[1]);
  if (record == nullptr) return call.reply.integer(-2);
  if (record->expires_at_ms == Record::never) return call.reply.integer(-1);
  const std::int64_t base = form.base == ExpiryBase::from_now ? call.now_ms : 0;
  const std::int64_t ms = record->expires_at_ms - base;
  // Rounds without adding: a key may expire in the last possible millisecond.
  const std::int64_t seconds = ms / 1000 + (ms % 1000 >= 500 ? 1 : 0);
  call.reply.integer(form.unit == ExpiryUnit::seconds ? seconds : ms);
}

void ttl(const Call& call) { reply_expiry(call, {ExpiryUnit::seconds, ExpiryBase::from_now}); }
void pttl(const Call& call) { reply_expiry(call, {ExpiryUnit::milliseconds, ExpiryBase::from_now}); }
void expiretime(const Call& call) { reply_expiry(call, {ExpiryUnit::seconds, ExpiryBase::absolute}); }
void pexpiretime(const Call& call) { reply_expiry(call, {ExpiryUnit::milliseconds, ExpiryBase::absolute}); }

void persist(const Call& call) {
  Record* record = call.write(call[1]);
  if (record == nullptr || record->expires_at_ms == Record::never) return call.reply.integer(0);
  call.db.clear_expiry(*record);
  call.changed(call[1]);
  call.reply.integer(1);
}

}  // namespace

std::span<const Command> expiry_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"expire", -3, write | fast, 1, 1, 1, expire, "generic", "Sets a key's time to live in seconds."},
      {"pexpire", -3, write | fast, 1, 1, 1, pexpire, "generic",
       "Sets a key's time to live in milliseconds."},
      {"expireat", -3, write | fast, 1, 1, 1, expireat, "generic",
       "Sets when a key expires, in seconds since 1970."},
      {"pexpireat", -3, write | fast, 1, 1, 1, pexpireat, "generic",
       "Sets when a key expires, in ms since 1970."},
      {"ttl", 2, readonly | fast, 1, 1, 1, ttl, "generic", "Returns a key's time to live in seconds."},
      {"pttl", 2, readonly | fast, 1, 1, 1, pttl, "generic", "Returns a key's time to live in milliseconds."},
      {"expiretime", 2, readonly | fast, 1, 1, 1, expiretime, "generic",
       "Returns when a key expires, in seconds."},
      {"pexpiretime", 2, readonly | fast, 1, 1, 1, pexpiretime, "generic",
       "Returns when a key expires, in ms."},
      {"persist", 2, write | fast, 1, 1, 1, persist, "generic", "Makes a key stay."},
  };
  return commands;
}

}  // namespace weir::kv
