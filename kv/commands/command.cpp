// COMMAND: the command table itself, for clients that ask.
#include "kv/commands/command.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "kv/commands/help.hpp"
#include "kv/glob.hpp"
#include "kv/number.hpp"
#include "kv/server/server.hpp"

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
    {flag::no_mandatory_keys, "no_mandatory_keys"},
    {flag::no_async_loading, "no_async_loading"},
    {flag::no_multi, "no_multi"},
    {flag::movablekeys, "movablekeys"},
    {flag::allow_busy, "allow_busy"},
};

// What neither flags nor groups tell. Redis lists them by hand, too; a subcommand goes by its container's
// name.
struct Membership {
  std::string_view category;
  std::string_view command;
};
constexpr Membership memberships[] = {
    {"@keyspace", "dbsize"},    {"@keyspace", "flushall"},  {"@keyspace", "flushdb"},
    {"@keyspace", "swapdb"},    {"@set", "sort"},           {"@set", "sort_ro"},
    {"@sortedset", "sort"},     {"@sortedset", "sort_ro"},  {"@list", "sort"},
    {"@list", "sort_ro"},       {"@admin", "role"},         {"@dangerous", "role"},
    {"@dangerous", "flushall"}, {"@dangerous", "flushdb"},  {"@dangerous", "swapdb"},
    {"@dangerous", "info"},     {"@dangerous", "keys"},     {"@dangerous", "sort"},
    {"@dangerous", "sort_ro"},  {"@connection", "command"},
};

bool sorts(const Command& command) { return command.name == "sort" || command.name == "sort_ro"; }

}  // namespace

std::vector<std::string_view> categories(const Command& command) {
  std::vector<std::string_view> names;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> of_group{{
      {"set", "@set"},
      {"sorted-set", "@sortedset"},
      {"list", "@list"},
      {"hash", "@hash"},
      {"string", "@string"},
      {"bitmap", "@bitmap"},
      {"connection", "@connection"},
      {"transactions", "@transaction"},
  }};
  const bool only_contains = command.run == nullptr;
  if (command.group == "generic" && !only_contains && !sorts(command)) names.emplace_back("@keyspace");
  if (command.has(flag::readonly)) names.emplace_back("@read");
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
  return names;
}

namespace {

void reply_key_spec(Reply& reply, const Command& command) {
  if (command.first_key == 0) return reply.set(0);
  reply.set(1);
  reply.map(3);
  reply.bulk("flags");
  reply.set(2);
  reply.simple(command.has(flag::write) ? "RW" : "RO");
  reply.simple(command.has(flag::write) ? "update" : "access");
  reply.bulk("begin_search");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("index");
  reply.bulk("spec");
  reply.map(1);
  reply.bulk("index");
  reply.integer(command.first_key);
  reply.bulk("find_keys");
  reply.map(2);
  reply.bulk("type");
  reply.bulk("range");
  reply.bulk("spec");
  reply.map(3);
  reply.bulk("lastkey");
  reply.integer(command.last_key < 0 ? command.last_key : command.last_key - command.first_key);
  reply.bulk("keystep");
  reply.integer(command.key_step);
  reply.bulk("limit");
  reply.integer(0);
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
  reply.set(0);
  reply_key_spec(reply, command);
  command.subcommands.empty() ? reply.set(0) : reply.array(command.subcommands.size());
  for (const Command& sub : command.subcommands) reply_info(reply, sub);
}

const Command* find_full(std::string_view name) {
  const std::size_t bar = name.find('|');
  const Command* command = find_command(name.substr(0, bar));
  if (command == nullptr || bar == std::string_view::npos) return command;
  for (const Command& sub : command->subcommands) {
    if (is_word(name.substr(bar + 1), sub.name)) return &sub;
  }
  return nullptr;
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
    const Command* command = find_full(call[i]);
    command == nullptr ? call.reply.null() : reply_info(call.reply, *command);
  }
}

void reply_docs(Reply& reply, const Command& command) {
  reply.bulk(command.full_name());
  reply.map(command.subcommands.empty() ? 2 : 3);
  reply.bulk("summary");
  reply.bulk(command.summary);
  reply.bulk("group");
  reply.bulk(command.group);
  if (command.subcommands.empty()) return;
  reply.bulk("subcommands");
  reply.map(command.subcommands.size());
  for (const Command& sub : command.subcommands) reply_docs(reply, sub);
}

void docs(const Call& call) {
  std::vector<const Command*> wanted;
  for (std::size_t i = 2; i < call.count(); ++i) {
    if (const Command* command = find_full(call[i])) wanted.push_back(command);
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
    for (const Command& sub : command->subcommands) {
      if (call.count() == 5) consider(sub);
    }
  }
  call.reply.array(names.size());
  for (const std::string& name : names) call.reply.bulk(name);
}

// The last STORE of SORT names a key, too. An option's arguments are no options.
std::optional<std::string_view> sort_destination(Arguments words) {
  std::optional<std::string_view> destination;
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (is_word(words[i].text, "LIMIT")) {
      i += 2;
    } else if (is_word(words[i].text, "GET") || is_word(words[i].text, "BY")) {
      i += 1;
    } else if (is_word(words[i].text, "STORE") && i + 1 < words.size()) {
      destination = words[i + 1].text;
    }
  }
  return destination;
}

// Which arguments of `words` are keys; none if they contradict themselves.
std::vector<std::string_view> keys_in(const Command& command, Arguments words) {
  std::vector<std::string_view> keys;
  if (command.first_key != 0) {
    const auto size = static_cast<int>(words.size());
    const int last = command.last_key < 0 ? size + command.last_key : command.last_key;
    for (int i = command.first_key; i <= last && i < size; i += command.key_step) {
      keys.push_back(words[static_cast<std::size_t>(i)].text);
    }
  }
  if (command.key_count_at != 0) {
    const auto at = static_cast<std::size_t>(command.key_count_at);
    const auto n = at < words.size() ? parse_int(words[at].text) : std::nullopt;
    if (!n || *n < 1 || *n > static_cast<std::int64_t>(words.size() - at - 1)) return {};
    for (const Argument& key : words.subspan(at + 1, static_cast<std::size_t>(*n))) keys.push_back(key.text);
  }
  if (command.name == "sort") {
    if (const auto key = sort_destination(words)) keys.push_back(*key);
  }
  return keys;
}

void getkeys(const Call& call) {
  const Arguments words = call.arguments.subspan(2);
  const Command* command = find_command(words[0].text);
  if (command != nullptr && !command->subcommands.empty() && words.size() > 1) {
    for (const Command& sub : command->subcommands) {
      if (is_word(words[1].text, sub.name)) command = &sub;
    }
  }
  if (command == nullptr) return call.reply.error("ERR Invalid command specified");
  if (command->first_key == 0 && command->key_count_at == 0) {
    return call.reply.error("ERR The command has no key arguments");
  }
  if (!command->takes(words.size())) {
    return call.reply.error("ERR Invalid number of arguments specified for command");
  }
  const auto keys = keys_in(*command, words);
  if (keys.empty()) return call.reply.error("ERR Invalid arguments specified for command");
  call.reply.array(keys.size());
  for (std::string_view key : keys) call.reply.bulk(key);
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
      {"help", 2, common, 0, 0, 0, command_help, "server", "Explains COMMAND.", {}, "command"},
  };
  static constexpr Command commands[] = {
      {"command", -1, common, 0, 0, 0, all, "server", "Describes all commands.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
