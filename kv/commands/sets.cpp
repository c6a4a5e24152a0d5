// Sets.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/commands/collection.hpp"
#include "kv/commands/random_choice.hpp"
#include "kv/effects/effects.hpp"
#include "kv/settings/deletion_word.hpp"
#include "kv/text/number.hpp"
#include "kv/text/text_hash.hpp"

namespace weir::kv {

namespace {

void sadd(const Call& call) {
  Set* set = nullptr;
  if (!write_as(call, call[1], set)) return;
  if (set == nullptr) set = &make_set(call, call[1]);
  std::int64_t added = 0;
  const SetLimits limits = set_limits(call);
  for (std::size_t i = 2; i < call.count(); ++i) added += set->insert(call[i], limits) ? 1 : 0;
  if (added != 0) call.changed(call[1]);
  call.reply.integer(added);
}

void srem(const Call& call) {
  Set* set = nullptr;
  if (!write_as(call, call[1], set)) return;
  if (set == nullptr) return call.reply.integer(0);
  std::int64_t removed = 0;
  for (std::size_t i = 2; i < call.count(); ++i) removed += set->erase(call[i]) ? 1 : 0;
  if (removed != 0) settle(call, call[1], *set);
  call.reply.integer(removed);
}

void smove(const Call& call) {
  Set* source = nullptr;
  Set* target = nullptr;
  if (call.write(call[1]) == nullptr) return call.reply.integer(0);
  if (!write_as(call, call[1], source) || !write_as(call, call[2], target)) return;
  if (source == target) return call.reply.integer(source->contains(call[3]) ? 1 : 0);
  if (!source->erase(call[3])) return call.reply.integer(0);
  settle(call, call[1], *source, {'s', "srem"});
  if (target == nullptr) target = &make_set(call, call[2]);
  if (target->insert(call[3], set_limits(call))) call.changed(call[2], {'s', "sadd"});
  call.reply.integer(1);
}

void sismember(const Call& call) {
  Set* set = nullptr;
  if (!read_as(call, call[1], set)) return;
  call.reply.integer(set != nullptr && set->contains(call[2]) ? 1 : 0);
}

void smismember(const Call& call) {
  Set* set = nullptr;
  if (!read_as(call, call[1], set)) return;
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i) {
    call.reply.integer(set != nullptr && set->contains(call[i]) ? 1 : 0);
  }
}

void scard(const Call& call) {
  Set* set = nullptr;
  if (!read_as(call, call[1], set)) return;
  call.reply.integer(set == nullptr ? 0 : static_cast<std::int64_t>(set->size()));
}

void smembers(const Call& call) {
  Set* set = nullptr;
  if (!read_as(call, call[1], set)) return;
  call.reply.set(set == nullptr ? 0 : set->size());
  if (set == nullptr) return;
  set->for_each([&](std::string_view member) {
    call.reply.bulk(member);
    return true;
  });
}

std::vector<std::string> members_of(const Set& set) {
  std::vector<std::string> all;
  set.for_each([&](std::string_view member) {
    all.emplace_back(member);
    return true;
  });
  return all;
}

// What SPOP took, so many members a request.
void replay_removal(const Call& call, std::span<const std::string> members) {
  constexpr std::size_t at_once = 1024;
  std::vector<RequestWord> words;
  while (!members.empty()) {
    const auto some = members.first(std::min(at_once, members.size()));
    words.assign({"SREM", call[1]});
    words.insert(words.end(), some.begin(), some.end());
    call.server.effects.say(call.db.index(), words);
    members = members.subspan(some.size());
  }
}

void spop(const Call& call) {
  if (call.count() > 3) return call.syntax_error();
  const bool counted = call.count() == 3;
  std::int64_t count = 1;
  if (counted && !positive(call, 2, count)) return;
  Set* set = nullptr;
  if (!write_as(call, call[1], set)) return;
  if (set == nullptr) return counted ? call.reply.set(0) : call.reply.null();
  auto random = [&] { return call.server.random(); };
  if (!counted) {
    const std::string member = set->sample(random);
    set->erase(member);
    call.reply.bulk(member);
    call.replay_as({"SREM", call[1], member});
    return settle(call, call[1], *set);
  }
  if (count == 0) return call.reply.set(0);
  const std::size_t n = std::min(static_cast<std::size_t>(count), set->size());
  call.reply.set(n);
  if (n == set->size()) {
    for (const std::string& member : members_of(*set)) call.reply.bulk(member);
    call.replay_as({deletion_word(call.server.settings.lazyfree_lazy_server_del), call[1]});
    return call.erase(call[1]);
  }
  std::vector<std::string> taken;
  for (std::size_t i = 0; i < n; ++i) {
    std::string member = set->sample(random);
    set->erase(member);
    call.reply.bulk(member);
    if (call.heard()) taken.push_back(std::move(member));
  }
  replay_removal(call, taken);
  settle(call, call[1], *set);
}

void srandmember(const Call& call) {
  RandomChoice choice;
  if (!parse_random_choice(call, {}, choice)) return;
  Set* set = nullptr;
  if (!read_as(call, call[1], set)) return;
  auto random = [&] { return call.server.random(); };
  if (!choice.counted) return set == nullptr ? call.reply.null() : call.reply.bulk(set->sample(random));
  if (set == nullptr || choice.count == 0) return call.reply.array(0);
  if (choice.repeat) {
    call.reply.array(choice.count);
    for (std::size_t i = 0; i < choice.count; ++i) call.reply.bulk(set->sample(random));
    return;
  }
  const std::vector<std::string> chosen = choose_different<TextSet>(
      set->size(), choice.count, [&] { return set->sample(random); }, std::identity(),
      [&] { return members_of(*set); }, random);
  call.reply.array(chosen.size());
  for (const std::string& member : chosen) call.reply.bulk(member);
}

// The sets of the keys, null for those that do not exist; answers WRONGTYPE and returns false when one is no
// set.
bool sets_of(const Call& call, Arguments keys, std::vector<Set*>& sets) {
  for (const Argument& key : keys) {
    Set* set = nullptr;
    if (!read_as(call, key.text, set)) return false;
    sets.push_back(set);
  }
  return true;
}

// Visits the members that all sets have until `visit` returns false.
template <class Visit>
void intersect(std::vector<Set*> sets, Visit visit) {
  if (std::ranges::find(sets, nullptr) != sets.end()) return;
  std::ranges::sort(sets, {}, [](const Set* set) { return set->size(); });
  sets[0]->for_each([&](std::string_view member) {
    const bool in_all =
        std::all_of(sets.begin() + 1, sets.end(), [&](Set* set) { return set->contains(member); });
    return !in_all || visit(member);
  });
}

// What all sets have if each of them is a row of integers, as small sets of numbers are: without making texts
// of them. nullopt: some are not.
std::optional<std::vector<std::int64_t>> common_integers(std::vector<Set*> sets) {
  const auto is_row = [](const Set* set) { return set != nullptr && set->as_integers() != nullptr; };
  if (!std::ranges::all_of(sets, is_row)) return std::nullopt;
  std::ranges::sort(sets, {}, [](const Set* set) { return set->size(); });
  std::vector<std::int64_t> numbers;
  sets[0]->as_integers()->append_to(numbers);
  for (const Set* set : std::span(sets).subspan(1)) {
    if (numbers.empty()) break;
    set->as_integers()->keep_common(numbers);
  }
  return numbers;
}

enum class SetOperation : std::uint8_t { intersection, united, difference };

Set combine(const Call& call, SetOperation operation, const std::vector<Set*>& sets) {
  Set result;
  const SetLimits limits = set_limits(call);
  auto add = [&](std::string_view member) {
    result.insert(member, limits);
    return true;
  };
  switch (operation) {
    case SetOperation::intersection:
      intersect(sets, add);
      break;
    case SetOperation::united:
      for (const Set* set : sets) {
        if (set != nullptr) set->for_each(add);
      }
      break;
    case SetOperation::difference:
      if (sets[0] == nullptr) break;
      sets[0]->for_each([&](std::string_view member) {
        const bool elsewhere = std::any_of(sets.begin() + 1, sets.end(),
                                           [&](Set* set) { return set != nullptr && set->contains(member); });
        return elsewhere || add(member);
      });
      break;
  }
  return result;
}

void reply_combined(const Call& call, SetOperation operation) {
  std::vector<Set*> sets;
  if (!sets_of(call, call.arguments.subspan(1), sets)) return;
  const Set result = combine(call, operation, sets);
  call.reply.set(result.size());
  result.for_each([&](std::string_view member) {
    call.reply.bulk(member);
    return true;
  });
}

void store_combined(const Call& call, SetOperation operation) {
  std::vector<Set*> sets;
  if (!sets_of(call, call.arguments.subspan(2), sets)) return;
  call.reply.integer(
      static_cast<std::int64_t>(store_collection(call, call[1], combine(call, operation, sets))));
}

void sinter(const Call& call) {
  std::vector<Set*> sets;
  if (!sets_of(call, call.arguments.subspan(1), sets)) return;
  const auto numbers = common_integers(sets);
  if (!numbers) return reply_combined(call, SetOperation::intersection);
  call.reply.set(numbers->size());
  for (const std::int64_t number : *numbers) call.reply.bulk_int(number);
}
void sunion(const Call& call) { reply_combined(call, SetOperation::united); }
void sdiff(const Call& call) { reply_combined(call, SetOperation::difference); }
void sinterstore(const Call& call) { store_combined(call, SetOperation::intersection); }
void sunionstore(const Call& call) { store_combined(call, SetOperation::united); }
void sdiffstore(const Call& call) { store_combined(call, SetOperation::difference); }

void sintercard(const Call& call) {
  const CountedKeys counted = counted_keys_in(call.arguments, 1);
  if (counted.wrong == CountedKeys::Wrong::too_many)
    return call.reply.error("ERR Number of keys can't be greater than number of args");
  if (counted.keys.empty()) return call.reply.error("ERR numkeys should be greater than 0");
  std::int64_t limit = 0;
  for (std::size_t i = counted.end; i < call.count(); i += 2) {
    if (!is_word(call[i], "LIMIT") || i + 1 >= call.count()) return call.syntax_error();
    if (!positive(call, i + 1, limit, "ERR LIMIT can't be negative")) return;
  }
  std::vector<Set*> sets;
  if (!sets_of(call, counted.keys, sets)) return;
  if (const auto numbers = common_integers(sets)) {
    const auto all = static_cast<std::int64_t>(numbers->size());
    return call.reply.integer(limit == 0 ? all : std::min(all, limit));
  }
  std::int64_t count = 0;
  intersect(sets, [&](std::string_view) { return ++count != limit; });
  call.reply.integer(count);
}

}  // namespace

std::span<const Command> set_commands() {
  using namespace flag;
  constexpr std::uint32_t look = readonly | fast;
  static constexpr Command commands[] = {
      {"sadd", -3, write | denyoom | fast, 1, 1, 1, sadd, "set", "Adds members to a set."},
      {"srem", -3, write | fast, 1, 1, 1, srem, "set", "Removes members from a set."},
      {"smove", 4, write | fast, 1, 2, 1, smove, "set", "Moves a member to another set."},
      {"sismember", 3, look, 1, 1, 1, sismember, "set", "Says whether something is a member."},
      {"smismember", -3, look, 1, 1, 1, smismember, "set", "Says which of several things are members."},
      {"scard", 2, look, 1, 1, 1, scard, "set", "Returns the number of members."},
      {"smembers", 2, readonly, 1, 1, 1, smembers, "set", "Returns all members."},
      {"spop", -2, write | fast, 1, 1, 1, spop, "set", "Takes random members."},
      {"srandmember", -2, readonly, 1, 1, 1, srandmember, "set", "Returns random members."},
      {"sinter", -2, readonly, 1, -1, 1, sinter, "set", "Returns what is in all sets."},
      {"sunion", -2, readonly, 1, -1, 1, sunion, "set", "Returns what is in any set."},
      {"sdiff", -2, readonly, 1, -1, 1, sdiff, "set", "Returns what is in the first set only."},
      {"sinterstore", -3, write | denyoom, 1, -1, 1, sinterstore, "set", "Stores what is in all sets."},
      {"sunionstore", -3, write | denyoom, 1, -1, 1, sunionstore, "set", "Stores what is in any set."},
      {"sdiffstore", -3, write | denyoom, 1, -1, 1, sdiffstore, "set",
       "Stores what is in the first set only."},
      {"sintercard", -3, readonly | movablekeys, 0, 0, 0, sintercard, "set", "Counts what is in all sets."},
  };
  return commands;
}

}  // namespace weir::kv
