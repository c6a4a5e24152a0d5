// COMMAND: shows clients the command table itself.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_syntax/command_syntax.hpp"
#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/command/key_specs.hpp"
#include "kv/commands/help.hpp"
#include "kv/text/glob.hpp"

namespace weir::kv {

namespace {

struct Named {
  std::uint32_t flag;
  std::string_view name;
};
constexpr Named flag_names[] = {
    {flag::write, "write"},
    {flag::readonly, "readonly"},
    {flag::denyoom, "denyoom"},
    {flag::admin, "admin"},
    {flag::pubsub, "pubsub"},
    {flag::noscript, "noscript"},
    {flag::blocking, "blocking"},
    {flag::loading, "loading"},
    {flag::stale, "stale"},
    {flag::skip_monitor, "skip_monitor"},
    {flag::skip_slowlog, "skip_slowlog"},
    {flag::asking, "asking"},
    {flag::fast, "fast"},
    {flag::no_auth, "no_auth"},
    {flag::no_async_loading, "no_async_loading"},
    {flag::no_mandatory_keys, "no_mandatory_keys"},
    {flag::no_multi, "no_multi"},
    {flag::movablekeys, "movablekeys"},
    {flag::allow_busy, "allow_busy"},
};

// Categories that follow neither from flags nor from groups. Redis lists them by hand as well. A subcommand
// goes by its container's name.
struct Membership {
  std::string_view category;
  std::string_view command;
};
constexpr Membership memberships[] = {
    {"@keyspace", "dbsize"},
    {"@keyspace", "flushall"},
    {"@keyspace", "flushdb"},
    {"@keyspace", "swapdb"},
    {"@set", "sort"},
    {"@set", "sort_ro"},
    {"@sortedset", "sort"},
    {"@sortedset", "sort_ro"},
    {"@list", "sort"},
    {"@list", "sort_ro"},
    {"@admin", "role"},
    {"@dangerous", "role"},
    {"@admin", "lastsave"},
    {"@dangerous", "lastsave"},
    {"@dangerous", "migrate"},
    {"@dangerous", "restore"},
    {"@dangerous", "restore-asking"},
    {"@keyspace", "restore-asking"},
    {"@dangerous", "flushall"},
    {"@dangerous", "flushdb"},
    {"@dangerous", "swapdb"},
    {"@dangerous", "info"},
    {"@dangerous", "keys"},
    {"@dangerous", "sort"},
    {"@dangerous", "sort_ro"},
    {"@connection", "command"},
    {"@connection", "wait"},
    {"@connection", "asking"},
    {"@connection", "readonly"},
    {"@connection", "readwrite"},
};

constexpr std::string_view category_order[] = {
    "@keyspace", "@read",   "@write",       "@set",       "@sortedset",  "@list",        "@hash",
    "@string",   "@bitmap", "@hyperloglog", "@geo",       "@stream",     "@pubsub",      "@admin",
    "@fast",     "@slow",   "@blocking",    "@dangerous", "@connection", "@transaction", "@scripting"};

bool names_no_keyspace(const Command& command) {
  return command.name == "sort" || command.name == "sort_ro" || command.name == "wait";
}

}  // namespace

std::vector<std::string_view> categories(const Command& command) {
  std::vector<std::string_view> names;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> of_group{{
      {"set", "@set"},
      {"sorted-set", "@sortedset"},
      {"list", "@list"},
      {"hash", "@hash"},
      {"string", "@string"},
      {"bitmap", "@bitmap"},
      {"connection", "@connection"},
      {"transactions", "@transaction"},
      {"scripting", "@scripting"},
      {"stream", "@stream"},
      {"hyperloglog", "@hyperloglog"},
      {"geo", "@geo"},
  }};
  const bool only_contains = command.run == nullptr;
  if (command.group == "generic" && !only_contains && !names_no_keyspace(command))
    names.emplace_back("@keyspace");
  // A script's reads are covered by the commands that it calls.
  if (command.has(flag::readonly) && command.group != "scripting") names.emplace_back("@read");
  if (command.has(flag::write)) names.emplace_back("@write");
  for (const auto& [group, category] : of_group) {
    if (command.group == group && !only_contains) names.push_back(category);
  }
  if (command.has(flag::pubsub)) names.emplace_back("@pubsub");
  if (command.has(flag::admin)) names.emplace_back("@admin");
  names.emplace_back(command.has(flag::fast) ? "@fast" : "@slow");
  if (command.has(flag::blocking)) names.emplace_back("@blocking");
  if (command.has(flag::admin)) names.emplace_back("@dangerous");
  const std::string_view name = command.container.empty() ? command.name : command.container;
  for (const Membership& row : memberships) {
    if (row.command == name) names.push_back(row.category);
  }
  std::ranges::sort(names, {}, [](std::string_view category) {
    return std::ranges::find(category_order, category) - std::begin(category_order);
  });
  return names;
}

namespace {

// Replies with a set of blank-separated words, each written by `say`.
void reply_words(Reply& reply, std::string_view words, void (Reply::*say)(std::string_view)) {
  std::size_t count = words.empty() ? 0 : 1;
  count += static_cast<std::size_t>(std::ranges::count(words, ' '));
  reply.set(count);
  for (; count != 0; --count) {
    const std::size_t end = std::min(words.find(' '), words.size());
    (reply.*say)(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

// Replies with one half of a key specification: its type, and its numbers by name.
void reply_search(Reply& reply, std::string_view half, std::string_view type,
                  std::initializer_list<std::pair<std::string_view, int>> numbers) {
  reply.bulk(half);
  reply.map(2);
  reply.bulk("type");
  reply.bulk(type);
  reply.bulk("spec");
  reply.map(numbers.size());
  for (const auto& [name, number] : numbers) {
    reply.bulk(name);
    reply.integer(number);
  }
}

void reply_key_spec(Reply& reply, const KeySpec& spec) {
  reply.map(3);
  reply.bulk("flags");
  reply_words(reply, spec.use, &Reply::simple);
  switch (spec.places) {
    case KeyPlaces::range:
      reply_search(reply, "begin_search", "index", {{"index", spec.begin}});
      reply_search(reply, "find_keys", "range",
                   {{"lastkey", spec.last}, {"keystep", spec.step}, {"limit", 0}});
      break;
    case KeyPlaces::counted:
      reply_search(reply, "begin_search", "index", {{"index", spec.begin}});
      reply_search(reply, "find_keys", "keynum", {{"keynumidx", 0}, {"firstkey", 1}, {"keystep", spec.step}});
      break;
    case KeyPlaces::keyword:
      reply.bulk("begin_search");
      reply.map(2);
      reply.bulk("type");
      reply.bulk("keyword");
      reply.bulk("spec");
      reply.map(2);
      reply.bulk("keyword");
      reply.bulk(spec.keyword);
      reply.bulk("startfrom");
      reply.integer(spec.begin);
      reply_search(reply, "find_keys", "range",
                   {{"lastkey", spec.last},
                    {"keystep", spec.step},
                    {"limit", spec.last < 0 && spec.begin > 0 ? 2 : 0}});
      break;
    case KeyPlaces::unknown:
      reply_search(reply, "begin_search", "unknown", {});
      reply_search(reply, "find_keys", "unknown", {});
  }
}

void reply_info(Reply& reply, const Command& command) {
  reply.array(10);
  reply.bulk(command.full_name());
  reply.integer(command.arity);
  const auto set_flags =
      std::ranges::count_if(flag_names, [&](const Named& n) { return command.has(n.flag); });
  reply.set(static_cast<std::size_t>(set_flags));
  for (const Named& named : flag_names) {
    if (command.has(named.flag)) reply.simple(named.name);
  }
  reply.integer(command.first_key);
  reply.integer(command.last_key);
  reply.integer(command.key_step);
  const auto acl = categories(command);
  reply.set(acl.size());
  for (std::string_view category : acl) reply.simple(category);
  reply_words(reply, tips(command), &Reply::bulk);
  const auto specs = key_specs(command);
  reply.set(specs.size());
  for (const KeySpec& spec : specs) reply_key_spec(reply, spec);
  command.subcommands.empty() ? reply.set(0) : reply.array(command.subcommands.size());
  for (const Command& sub : command.subcommands) reply_info(reply, sub);
}

void all(const Call& call) {
  call.reply.array(all_commands().size());
  for (const Command* command : all_commands()) reply_info(call.reply, *command);
}

void count(const Call& call) { call.reply.integer(static_cast<std::int64_t>(all_commands().size())); }

void command_info(const Call& call) {
  if (call.count() == 2) return all(call);
  call.reply.array(call.count() - 2);
  for (std::size_t i = 2; i < call.count(); ++i) {
    const Command* command = find_full_name(call[i]);
    command == nullptr ? call.reply.null() : reply_info(call.reply, *command);
  }
}

void reply_field(Reply& reply, std::string_view name, std::string_view value) {
  reply.bulk(name);
  reply.bulk(value);
}

void reply_arguments(Reply& reply, const std::vector<command_syntax::Argument>& arguments);

void reply_argument(Reply& reply, const command_syntax::Argument& one) {
  std::string flags;
  for (const auto& [is_so, flag] : {std::pair(one.optional, "optional"), std::pair(one.multiple, "multiple"),
                                    std::pair(one.multiple_token, "multiple_token")})
    if (is_so) flags.append(flags.empty() ? "" : " ").append(flag);
  const bool has_key = one.key_specification >= 0;
  reply.map(2u + (has_key ? 1 : 0) + (one.has_token ? 1 : 0) + (one.since.empty() ? 0 : 1) +
            (one.deprecated_since.empty() ? 0 : 1) + (flags.empty() ? 0 : 1) +
            (one.arguments.empty() ? 0 : 1));
  reply_field(reply, "name", one.name);
  reply_field(reply, "type", name_of(one.type));
  if (has_key) {
    reply.bulk("key_spec_index");
    reply.integer(one.key_specification);
  }
  if (one.has_token) reply_field(reply, "token", one.token);
  if (!one.since.empty()) reply_field(reply, "since", one.since);
  if (!one.deprecated_since.empty()) reply_field(reply, "deprecated_since", one.deprecated_since);
  if (!flags.empty()) {
    reply.bulk("flags");
    reply_words(reply, flags, &Reply::simple);
  }
  if (!one.arguments.empty()) reply_arguments(reply, one.arguments);
}

void reply_arguments(Reply& reply, const std::vector<command_syntax::Argument>& arguments) {
  reply.bulk("arguments");
  reply.array(arguments.size());
  for (const command_syntax::Argument& one : arguments) reply_argument(reply, one);
}

void reply_docs(Reply& reply, const Command& command) {
  const std::string name = command.full_name();
  const command_syntax::CommandSyntax* const syntax = command_syntax::find_command(name);
  const auto arguments =
      syntax != nullptr ? command_syntax::arguments_of(*syntax) : std::vector<command_syntax::Argument>();
  const std::string_view complexity = syntax != nullptr ? syntax->complexity : std::string_view();
  reply.bulk(name);
  reply.map(2u + (syntax != nullptr ? 1 : 0) + (complexity.empty() ? 0 : 1) + (arguments.empty() ? 0 : 1) +
            (command.subcommands.empty() ? 0 : 1));
  reply_field(reply, "summary", command.summary);
  if (syntax != nullptr) reply_field(reply, "since", syntax->since);
  reply_field(reply, "group", command.group);
  if (!complexity.empty()) reply_field(reply, "complexity", complexity);
  if (!arguments.empty()) reply_arguments(reply, arguments);
  if (command.subcommands.empty()) return;
  reply.bulk("subcommands");
  reply.map(command.subcommands.size());
  for (const Command& sub : command.subcommands) reply_docs(reply, sub);
}

void docs(const Call& call) {
  std::vector<const Command*> wanted;
  for (std::size_t i = 2; i < call.count(); ++i) {
    if (const Command* command = find_full_name(call[i])) wanted.push_back(command);
  }
  if (call.count() == 2) wanted.assign(all_commands().begin(), all_commands().end());
  call.reply.map(wanted.size());
  for (const Command* command : wanted) reply_docs(call.reply, *command);
}

void command_list(const Call& call) {
  std::string_view pattern = "*";
  std::string_view category;
  if (call.count() == 5 && is_word(call[2], "FILTERBY") && is_word(call[3], "PATTERN")) {
    pattern = call[4];
  } else if (call.count() == 5 && is_word(call[2], "FILTERBY") && is_word(call[3], "ACLCAT")) {
    category = call[4];
  } else if (call.count() == 5 && is_word(call[2], "FILTERBY") && is_word(call[3], "MODULE")) {
    return call.reply.array(0);
  } else if (call.count() != 2) {
    return call.syntax_error();
  }
  std::vector<std::string> names;
  auto consider = [&](const Command& command) {
    const auto own = categories(command);
    const bool in_category = category.empty() || std::ranges::any_of(own, [&](std::string_view name) {
                               return is_word(category, name.substr(1));
                             });
    if (in_category && glob_match(pattern, command.full_name(), Case::ignore))
      names.push_back(command.full_name());
  };
  for (const Command* command : all_commands()) {
    consider(*command);
    for (const Command& sub : command->subcommands) consider(sub);
  }
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

// The keys of the command that the client asks about; replies with an error if it has none.
std::optional<std::vector<KeyInUse>> asked_keys(const Call& call) {
  const Arguments words = call.arguments.subspan(2);
  const auto refuse = [&call](std::string_view error) {
    call.reply.error(error);
    return std::nullopt;
  };
  const Command* command = find_command(words);
  if (command == nullptr) return refuse("ERR Invalid command specified");
  if (!has_keys(*command)) return refuse("ERR The command has no key arguments");
  if (!command->takes(words.size())) return refuse("ERR Invalid number of arguments specified for command");
  auto keys = keys_in(*command, words);
  if ((!keys || keys->empty()) && command->has(flag::no_mandatory_keys)) return std::vector<KeyInUse>();
  if (!keys || keys->empty()) return refuse("ERR Invalid arguments specified for command");
  return keys;
}

void getkeys(const Call& call) {
  const auto keys = asked_keys(call);
  if (!keys) return;
  call.reply.array(keys->size());
  for (const KeyInUse& in_use : *keys) call.reply.bulk(in_use.key);
}

void getkeysandflags(const Call& call) {
  const auto keys = asked_keys(call);
  if (!keys) return;
  call.reply.array(keys->size());
  for (const KeyInUse& in_use : *keys) {
    call.reply.array(2);
    call.reply.bulk(in_use.key);
    reply_words(call.reply, in_use.use, &Reply::simple);
  }
}

void command_help(const Call& call) {
  reply_help(call, {
                       "(no subcommand)",
                       "    Return details about all Redis commands.",
                       "COUNT",
                       "    Return the total number of commands in this Redis server.",
                       "LIST",
                       "    Return a list of all commands in this Redis server.",
                       "INFO [<command-name> ...]",
                       "    Return details about multiple Redis commands.",
                       "    If no command names are given, documentation details for all",
                       "    commands are returned.",
                       "DOCS [<command-name> ...]",
                       "    Return documentation details about multiple Redis commands.",
                       "    If no command names are given, documentation details for all",
                       "    commands are returned.",
                       "GETKEYS <full-command>",
                       "    Return the keys from a full Redis command.",
                       "GETKEYSANDFLAGS <full-command>",
                       "    Return the keys and the access flags from a full Redis command.",
                   });
}

}  // namespace

std::span<const Command> command_commands() {
  using namespace flag;
  constexpr std::uint32_t common = loading | stale;
  static constexpr Command subcommands[] = {
      {"count", 2, common, 0, 0, 0, count, "server", "Counts the commands.", {}, "command"},
      {"info", -2, common, 0, 0, 0, command_info, "server", "Describes commands.", {}, "command"},
      {"docs", -2, common, 0, 0, 0, docs, "server", "Documents commands.", {}, "command"},
      {"list", -2, common, 0, 0, 0, command_list, "server", "Names the commands.", {}, "command"},
      {"getkeys", -4, common, 0, 0, 0, getkeys, "server", "Finds the keys in a command.", {}, "command"},
      {"getkeysandflags",
       -4,
       common,
       0,
       0,
       0,
       getkeysandflags,
       "server",
       "Finds the keys in a command and says what it does to them.",
       {},
       "command"},
      {"help", 2, common, 0, 0, 0, command_help, "server", "Explains COMMAND.", {}, "command"},
  };
  static constexpr Command commands[] = {
      {"command", -1, common, 0, 0, 0, all, "server", "Describes all commands.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
