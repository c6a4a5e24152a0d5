// Commands that do two things to fields of a hash at once: read and delete them (HGETDEL), read them and set
// when they expire (HGETEX), write them with a time (HSETEX). Replies and errors are Redis 8's.
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/commands/field_words.hpp"
#include "kv/effects/effects.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

constexpr std::string_view count_not_positive = "Number of fields must be a positive integer";

bool wrong(const Call& call, std::string_view error) {
  call.reply.error("ERR " + std::string(error));
  return false;
}
bool wrong_count(const Call& call) {
  return wrong(call, "wrong number of arguments for '" + call.command.full_name() + "' command");
}

// When fields expire: "EX seconds" and its like, or a word instead of a time.
struct TimeOption {
  enum class Kind : std::uint8_t { none, time, word };
  Kind kind = Kind::none;
  std::int64_t at_ms = 0;
};

// Takes such an option at argument `at`, if there is one, and moves `at` behind it. Replies with the error
// and returns false if it is wrong.
bool take_time(const Call& call, std::size_t& at, std::string_view word, TimeOption& option) {
  ExpiryForm form{};
  const bool is_the_word = is_word(call[at], word);
  if (!is_the_word && !expiry_form(call[at], form)) return true;
  if (option.kind != TimeOption::Kind::none)
    return wrong(call,
                 "Only one of EX, PX, EXAT, PXAT or " + std::string(word) + " arguments can be specified");
  option.kind = is_the_word ? TimeOption::Kind::word : TimeOption::Kind::time;
  ++at;
  if (is_the_word) return true;
  if (at == call.count()) return wrong(call, "missing expire time");
  return field_time(call, at++, form, option.at_ms);
}

// Answers with the fields' values; `found` gets those that exist.
void reply_fields(const Call& call, Hash*& hash, Arguments fields, std::vector<std::string_view>& found) {
  call.reply.array(fields.size());
  for (const Argument& field : fields) {
    const auto value = living(call, hash, field.text);
    value ? reply_text(call, *value) : call.reply.null();
    if (value) found.push_back(field.text);
  }
}

void hgetdel(const Call& call) {
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  Arguments fields;
  if (!counted_fields(call, 2, count_not_positive, fields)) return;
  // What has expired goes first: the key may go with it, but not once a field has been answered.
  for (const Argument& field : fields) living(call, hash, field.text);
  std::vector<std::string_view> found;
  call.reply.array(fields.size());
  for (const Argument& field : fields) {
    const auto value = hash == nullptr ? std::nullopt : hash->find(field.text);
    value ? reply_text(call, *value) : call.reply.null();
    if (!value) continue;
    hash->erase(field.text);
    found.push_back(field.text);
  }
  if (!found.empty()) fields_deleted(call, *hash, found);
}

void hgetex(const Call& call) {
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  TimeOption time;
  std::size_t at = 2;
  if (!take_time(call, at, "PERSIST", time)) return;
  Arguments fields;
  if (!counted_fields(call, at, count_not_positive, fields)) return;
  std::vector<std::string_view> found;
  reply_fields(call, hash, fields, found);
  const bool persists = time.kind == TimeOption::Kind::word;
  if (persists) std::erase_if(found, [&](std::string_view field) { return !hash->persist(field); });
  if (found.empty()) return;
  if (persists) return fields_persist(call, found);
  if (time.kind == TimeOption::Kind::time) set_times(call, *hash, found, time.at_ms);
}

enum class Exist : std::uint8_t { any, none, all };

struct SetOptions {
  Exist exist = Exist::any;
  Exist key = Exist::any;  // Valkey 9.1's: whether there is a hash
  TimeOption time;
  Arguments pairs;
  bool keeps_times() const { return time.kind == TimeOption::Kind::word; }
};

// "FIELDS numfields field value [field value ...]", from argument `at` to the end.
bool counted_pairs(const Call& call, std::size_t at, Arguments& pairs) {
  if (at + 1 >= call.count()) return wrong_count(call);
  const auto count = parse_int(call[at + 1]);
  if (!count || *count < 1) return wrong(call, "invalid number of fields");
  pairs = call.arguments.subspan(at + 2);
  if (pairs.size() % 2 != 0 || static_cast<std::uint64_t>(*count) != pairs.size() / 2)
    return wrong_count(call);
  return true;
}

bool take_condition(const Call& call, std::size_t& at, SetOptions& options) {
  struct Condition {
    std::string_view none, all;
    Exist& exist;
  };
  for (const Condition& one : {Condition{"FNX", "FXX", options.exist}, Condition{"NX", "XX", options.key}}) {
    const bool none = is_word(call[at], one.none);
    if (!none && !is_word(call[at], one.all)) continue;
    if (one.exist != Exist::any) {
      return wrong(call, "Only one of " + std::string(one.all) + " or " + std::string(one.none) +
                             " arguments can be specified");
    }
    one.exist = none ? Exist::none : Exist::all;
    ++at;
    return true;
  }
  return wrong(call, "unknown argument: " + std::string(up_to_zero(call[at])));
}

bool parse_set(const Call& call, SetOptions& options) {
  for (std::size_t at = 2; at < call.count();) {
    if (is_word(call[at], "FIELDS")) return counted_pairs(call, at, options.pairs);
    const std::size_t before = at;
    if (!take_time(call, at, "KEEPTTL", options.time)) return false;
    if (at == before && !take_condition(call, at, options)) return false;
  }
  return wrong_count(call);
}

bool may_set(const Call& call, Hash*& hash, const SetOptions& options) {
  if (options.key != Exist::any && (hash != nullptr) != (options.key == Exist::all)) return false;
  if (options.exist == Exist::any) return true;
  for (std::size_t i = 0; i < options.pairs.size(); i += 2) {
    if (living(call, hash, options.pairs[i].text).has_value() != (options.exist == Exist::all)) return false;
  }
  return true;
}

// The change in words that need not know which fields there were, nor this command.
void say_set(const Call& call, const Hash& hash, const SetOptions& options) {
  if (!call.heard()) return;
  std::vector<RequestWord> words{"HSET", call[1]};
  for (const Argument& word : options.pairs) words.emplace_back(word.text);
  call.server.effects.say(call.db.index(), words);
  for (std::size_t i = 0; options.keeps_times() && i < options.pairs.size(); i += 2) {
    const std::string_view field = options.pairs[i].text;
    if (const std::int64_t at_ms = hash.time_of(field); at_ms != FieldTimes::never)
      call.replay_as({"HPEXPIREAT", call[1], at_ms, "FIELDS", "1", field});
  }
}

void hsetex(const Call& call) {
  SetOptions options;
  if (!parse_set(call, options)) return;
  Hash* hash = nullptr;
  if (!write_as(call, call[1], hash)) return;
  if (!may_set(call, hash, options)) return call.reply.integer(0);
  std::vector<std::string_view> fields;
  for (std::size_t i = 0; i < options.pairs.size(); i += 2) {
    const std::string_view field = options.pairs[i].text;
    if (options.keeps_times()) living(call, hash, field);
    if (hash == nullptr) hash = &make_hash(call, call[1]);
    const GivenText value = given(options.pairs[i + 1]);
    options.keeps_times() ? hash->update(field, value, hash_limits(call))
                          : hash->set(field, value, hash_limits(call));
    fields.push_back(field);
  }
  say_set(call, *hash, options);
  call.db.fields_changed(call[1]);
  call.changed(call[1], {'h', "hset"});
  call.reply.integer(1);
  if (options.time.kind == TimeOption::Kind::time) set_times(call, *hash, fields, options.time.at_ms);
}

}  // namespace

std::span<const Command> field_combined_commands() {
  using namespace flag;
  static constexpr Command commands[] = {
      {"hgetdel", -5, write | fast, 1, 1, 1, hgetdel, "hash", "Returns fields' values and deletes them."},
      {"hgetex", -5, write | fast, 1, 1, 1, hgetex, "hash",
       "Returns fields' values and sets when they expire."},
      {"hsetex", -6, write | denyoom | fast, 1, 1, 1, hsetex, "hash",
       "Sets fields of a hash and when they expire."},
  };
  return commands;
}

}  // namespace weir::kv
