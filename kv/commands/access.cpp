// ACL: what there is to say of access control where there is one user, who may do everything.
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <string>

#include "kv/commands/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/server/server.hpp"

namespace weir::kv {

namespace {

constexpr std::array<std::string_view, 21> category_names{
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};

// As Redis shows a password: its SHA-256. Empty: there is none.
std::string password_digest(const Server& server) {
  const std::string& password = server.settings.requirepass;
  if (password.empty()) return {};
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(), digest.data());
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) text.append(1, digits[byte >> 4]).append(1, digits[byte & 15]);
  return text;
}

void whoami(const Call& call) { call.reply.bulk("default"); }
void users(const Call& call) { call.reply.bulks({"default"}); }

void list(const Call& call) {
  const std::string digest = password_digest(call.server);
  call.reply.array(1);
  call.reply.bulk("user default on " + (digest.empty() ? "nopass" : '#' + digest) + " ~* &* +@all");
}

void getuser(const Call& call) {
  if (call[2] != "default") return call.reply.null();
  const std::string digest = password_digest(call.server);
  call.reply.map(6);
  call.reply.bulk("flags");
  call.reply.set(digest.empty() ? 2 : 1);
  call.reply.bulk("on");
  if (digest.empty()) call.reply.bulk("nopass");
  call.reply.bulk("passwords");
  call.reply.array(digest.empty() ? 0 : 1);
  if (!digest.empty()) call.reply.bulk(digest);
  call.reply.bulk("commands");
  call.reply.bulk("+@all");
  call.reply.bulk("keys");
  call.reply.bulk("~*");
  call.reply.bulk("channels");
  call.reply.bulk("&*");
  call.reply.bulk("selectors");
  call.reply.array(0);
}

// Whether a name such as "read" is that of a category as commands carry it: "@read".
bool is_category(std::string_view name, std::string_view category) {
  return category.starts_with('@') && is_word(name, category.substr(1));
}

void cat(const Call& call) {
  if (call.count() > 3) return call.subcommand_error();
  if (call.count() == 2) {
    call.reply.array(category_names.size());
    for (std::string_view name : category_names) call.reply.bulk(name);
    return;
  }
  const bool known =
      std::ranges::any_of(category_names, [&](std::string_view name) { return is_word(call[2], name); });
  if (!known) return call.reply.error("ERR Unknown category '" + std::string(call[2]) + "'");
  std::vector<std::string> found;
  auto consider = [&](const Command& command) {
    for (std::string_view category : categories(command)) {
      if (is_category(call[2], category)) return found.push_back(command.full_name());
    }
  };
  for (const Command* command : all_commands()) {
    consider(*command);
    for (const Command& sub : command->subcommands) consider(sub);
  }
  call.reply.array(found.size());
  for (const std::string& name : found) call.reply.bulk(name);
}

void acl_help(const Call& call) {
  reply_help(call, {
                       "CAT [<category>]",
                       "    List all commands that belong to <category>, or all command categories",
                       "    when no category is specified.",
                       "GETUSER <username>",
                       "    Get the user's details.",
                       "LIST",
                       "    Show users details in config file format.",
                       "USERS",
                       "    List all the registered usernames.",
                       "WHOAMI",
                       "    Return the current connection username.",
                   });
}

}  // namespace

std::span<const Command> access_commands() {
  using namespace flag;
  constexpr std::uint32_t plain = noscript | loading | stale;
  constexpr std::uint32_t managing = admin | plain;
  static constexpr Command subcommands[] = {
      {"whoami", 2, plain, 0, 0, 0, whoami, "server", "Returns this client's user.", {}, "acl"},
      {"users", 2, managing, 0, 0, 0, users, "server", "Names the users.", {}, "acl"},
      {"list", 2, managing, 0, 0, 0, list, "server", "Describes the users.", {}, "acl"},
      {"getuser", 3, managing, 0, 0, 0, getuser, "server", "Describes a user.", {}, "acl"},
      {"cat", -2, plain, 0, 0, 0, cat, "server", "Names categories, or a category's commands.", {}, "acl"},
      {"help", 2, loading | stale, 0, 0, 0, acl_help, "server", "Explains ACL.", {}, "acl"},
  };
  static constexpr Command commands[] = {
      {"acl", -2, 0, 0, 0, 0, nullptr, "server", "Looks at access control.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
