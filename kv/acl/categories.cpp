#include "kv/acl/categories.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace weir::kv::acl {

namespace {

constexpr std::array<std::string_view, 21> category_names{
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};

void put_into(std::vector<Category>& all, const Command& command) {
  for (const std::string_view own : categories(command)) {
    const auto category = std::ranges::find(all, own.substr(1), &Category::name);
    if (category == all.end()) continue;
    category->members.set(command.id);
    category->covers |= bits_of(command);
  }
}

}  // namespace

std::span<const Category> all_categories() {
  static const std::vector<Category> all = [] {
    std::vector<Category> fresh;
    for (std::string_view name : category_names) fresh.push_back({name, {}, {}});
    for (const Command* command : all_commands()) {
      put_into(fresh, *command);
      for (const Command& sub : command->subcommands) put_into(fresh, sub);
    }
    return fresh;
  }();
  return all;
}

const Category* find_category(std::string_view name) {
  const auto all = all_categories();
  const auto found = std::ranges::find_if(all, [&](const Category& one) { return is_word(name, one.name); });
  return found == all.end() ? nullptr : &*found;
}

const CommandBits& every_command() {
  static const CommandBits every = [] {
    CommandBits bits;
    for (const Command* command : all_commands()) bits |= bits_of(*command);
    return bits;
  }();
  return every;
}

CommandBits bits_of(const Command& command) {
  CommandBits bits;
  bits.set(command.id);
  for (const Command& sub : command.subcommands) bits.set(sub.id);
  return bits;
}

}  // namespace weir::kv::acl
