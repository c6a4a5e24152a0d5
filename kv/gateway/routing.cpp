#include "kv/gateway/routing.hpp"

#include <algorithm>

#include "cluster/key_slot.hpp"
#include "kv/command/key_specs.hpp"
#include "kv/command/option_walk.hpp"
#include "kv/gateway/scan_cursor.hpp"

namespace weir::kv::cluster {

using weir::cluster::key_slot;

namespace {

constexpr std::string_view about_node =
    "it is about one server's own data, and a gateway keeps none: ask a node of the cluster itself";
constexpr std::string_view about_connection =
    "it changes a connection to a node, which clients of a gateway share: connect to a node of the cluster "
    "for that";
constexpr std::string_view no_key =
    "it names no key, so nothing says which node should run it: name one, or ask a node of the cluster "
    "itself";

struct NamedRow {
  std::string_view why;
  std::string_view names;
};
constexpr NamedRow refused_rows[] = {
    {about_node,
     "save bgsave bgrewriteaof lastsave swapdb sync psync replconf replicaof slaveof failover role debug "
     "cluster asking readonly readwrite migrate script|kill script|debug function|kill"},
    {about_connection, "client|tracking client|caching"},
};

using Needs = Route::Needs;
constexpr std::string_view to_any_node =
    "publish subscribe psubscribe function|list function|dump function|stats";
constexpr std::string_view to_all_nodes =
    "dbsize flushall flushdb keys randomkey script|load script|exists script|flush function|load "
    "function|delete function|flush function|restore";
constexpr std::string_view to_slot_of_channel = "spublish ssubscribe";
constexpr std::string_view subscribing = "subscribe psubscribe ssubscribe";

bool lists(std::string_view names, std::string_view wanted) {
  while (!names.empty()) {
    const std::size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == wanted) return true;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return false;
}

// XREAD and XREADGROUP block only with the option BLOCK.
bool says_block(Arguments words) {
  OptionWalk walk(stream_reading_options, words);
  while (walk.next()) {
    if (walk.is("BLOCK")) return true;
  }
  return false;
}

// Commands that would save this server's empty dataset over the contents of a file.
bool keeps_data(const Command& command, Arguments words) {
  const auto any_is = [&](std::size_t from, std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(words.subspan(std::min(from, words.size())), [&](const Argument& word) {
      return std::ranges::any_of(names, [&](std::string_view name) { return is_word(word.text, name); });
    });
  };
  if (command.name == "shutdown") return any_is(1, {"SAVE"});
  return command.container == "config" && command.name == "set" && any_is(2, {"appendonly", "save"});
}

}  // namespace

bool may_write(const Command& command) {
  return command.has(flag::write) || (command.group == "scripting" && command.has(flag::may_replicate));
}

Routing::Routing() {
  const auto note = [this](const Command& command) {
    if (command.id >= rules_.size()) rules_.resize(command.id + std::size_t{1});
    rules_[command.id] = rule_of(command);
  };
  for (const Command* command : all_commands()) {
    note(*command);
    for (const Command& sub : command->subcommands) note(sub);
  }
}

Routing::Rule Routing::rule_of(const Command& command) {
  const std::string_view family = command.container.empty() ? command.name : command.container;
  const std::string full = command.full_name();
  const auto is_in = [&](std::string_view names) { return lists(names, full); };
  for (const NamedRow& row : refused_rows)
    if (lists(row.names, family) || is_in(row.names)) return {Kind::refused, row.why};
  const Needs needs = is_in(subscribing)            ? Needs::subscription
                      : is_in("watch")              ? Needs::own_link_for_watch
                      : command.has(flag::blocking) ? Needs::own_link_to_wait
                                                    : Needs::nothing;
  if (is_in(to_any_node)) return {Kind::any_node, {}, needs};
  if (is_in(to_all_nodes)) return {Kind::all_nodes, {}, needs};
  if (is_in("wait waitaof")) return {Kind::written_node, {}, Needs::own_link_to_wait};
  if (is_in("scan")) return {Kind::scan};
  if (is_in(to_slot_of_channel)) return {Kind::fixed_keys, {}, needs};
  if (is_in("unsubscribe punsubscribe sunsubscribe")) return {};
  if (has_keys(command)) {
    const bool fixed = key_specs(command).size() == 1 && command.first_key > 0 && command.key_step > 0 &&
                       !command.has(flag::movablekeys);
    return {fixed ? Kind::fixed_keys : Kind::found_keys, {}, needs};
  }
  return {};
}

Route Routing::route(const Command* command, Arguments words) const {
  // Wrong syntax is reported here, as without a gateway.
  if (command == nullptr || !command->takes(words.size())) return {};
  const Rule& rule = rules_[command->id];
  switch (rule.kind) {
    case Kind::here:
      return keeps_data(*command, words) ? Route{Route::Where::refused, 0, about_node} : Route{};
    case Kind::any_node:
      return {Route::Where::any_node, 0, {}, rule.needs};
    case Kind::all_nodes:
      return {Route::Where::all_nodes, 0, {}, rule.needs};
    case Kind::written_node:
      return {Route::Where::written_node, 0, {}, rule.needs};
    case Kind::refused:
      return {Route::Where::refused, 0, rule.why};
    case Kind::scan:
      if (const auto cursor = ScanCursor::read(words[1].text))
        return {Route::Where::scanned_node, cursor->node};
      return {};
    case Kind::fixed_keys:
    case Kind::found_keys:
      break;
  }
  const bool answers_at_once = command->name.starts_with("xread") && !says_block(words);
  Route route{.where = Route::Where::slot, .needs = answers_at_once ? Needs::nothing : rule.needs};
  if (rule.kind == Kind::fixed_keys) {
    const auto first = static_cast<std::size_t>(std::max(command->first_key, 1));
    const auto step = static_cast<std::size_t>(std::max(command->key_step, 1));
    const int last_key = command->last_key < 0 ? static_cast<int>(words.size()) + command->last_key
                                               : std::max(command->last_key, command->first_key);
    route.slot = key_slot(words[first].text);
    for (std::size_t i = first + step; i <= static_cast<std::size_t>(std::max(last_key, 0)); i += step) {
      if (i < words.size() && key_slot(words[i].text) != route.slot) return {Route::Where::cross_slot, 0, {}};
    }
    return route;
  }
  const auto keys = keys_in(*command, words);
  if (!keys) return {};  // its words are wrong, which is reported here
  // A script without keys may run on any node; clients of a cluster expect that.
  if (keys->empty() && command->group == "scripting") return {Route::Where::any_node, 0, {}};
  if (keys->empty()) return {Route::Where::refused, 0, no_key};
  route.slot = key_slot(keys->front().key);
  for (const KeyInUse& key : *keys) {
    if (key_slot(key.key) != route.slot) return {Route::Where::cross_slot, 0, {}};
  }
  return route;
}

}  // namespace weir::kv::cluster
