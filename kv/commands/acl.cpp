// ACL: users and their permissions.
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "kv/call/call.hpp"
#include "kv/clients/access_control.hpp"
#include "kv/clients/client.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/help.hpp"
#include "kv/text/number.hpp"

namespace weir::kv {

namespace {

void whoami(const Call& call) { call.reply.bulk(call.client.user->name()); }

void users(const Call& call) {
  const auto& all = call.server.access.users().all();
  call.reply.array(all.size());
  for (const auto& [name, user] : all) call.reply.bulk(name);
}

void list(const Call& call) {
  const auto& all = call.server.access.users().all();
  call.reply.array(all.size());
  for (const auto& [name, user] : all) call.reply.bulk("user " + name + ' ' + user->text());
}

void reply_selector(Reply& reply, const acl::Selector& selector) {
  reply.bulk("commands");
  reply.bulk(selector.commands_text());
  reply.bulk("keys");
  reply.bulk(selector.keys_text());
  reply.bulk("channels");
  reply.bulk(selector.channels_text());
}

void getuser(const Call& call) {
  const acl::User* user = call.server.access.users().find(call[2]);
  if (user == nullptr) return call.reply.null();
  call.reply.map(6);
  call.reply.bulk("flags");
  const auto flags = user->flags();
  call.reply.set(flags.size());
  for (std::string_view flag : flags) call.reply.bulk(flag);
  call.reply.bulk("passwords");
  call.reply.array(user->passwords().size());
  for (const std::string& digest : user->passwords()) call.reply.bulk(digest);
  reply_selector(call.reply, user->selectors()[0]);
  call.reply.bulk("selectors");
  call.reply.array(user->selectors().size() - 1);
  for (const acl::Selector& selector : std::span(user->selectors()).subspan(1)) {
    call.reply.map(3);
    reply_selector(call.reply, selector);
  }
}

void setuser(const Call& call) {
  if (!acl::is_one_word(call[2]))
    return call.reply.error("ERR Usernames can't contain spaces or null characters");
  std::vector<std::string> rules;
  for (const Argument& rule : call.arguments.subspan(3)) rules.emplace_back(rule.text);
  const auto done = call.server.access.set_user(call[2], rules);
  done ? call.reply.ok() : call.reply.error("ERR " + done.error());
}

void deluser(const Call& call) {
  const auto names = call.arguments.subspan(2);
  if (std::ranges::any_of(names, [](const Argument& name) { return name.text == "default"; }))
    return call.reply.error("ERR The 'default' user cannot be removed");
  std::int64_t removed = 0;
  for (const Argument& name : names) removed += call.server.access.remove_user(name.text) ? 1 : 0;
  call.reply.integer(removed);
}

void cat(const Call& call) {
  if (call.count() > 3) return call.subcommand_error();
  if (call.count() == 2) {
    call.reply.array(acl::all_categories().size());
    for (const acl::Category& category : acl::all_categories()) call.reply.bulk(category.name);
    return;
  }
  const acl::Category* category = acl::find_category(call[2]);
  if (category == nullptr)
    return call.reply.error("ERR Unknown category '" + std::string(up_to_zero(call[2]).substr(0, 128)) + "'");
  call.reply.array(category->members.count());
  const auto tell = [&](const Command& command) {
    if (category->members.test(command.id)) call.reply.bulk(command.full_name());
  };
  for (const Command* command : all_commands()) {
    tell(*command);
    for (const Command& sub : command->subcommands) tell(sub);
  }
}

void genpass(const Call& call) {
  if (call.count() > 3) return call.subcommand_error();
  constexpr std::int64_t most_bits = 4096;
  std::int64_t bits = 256;
  if (call.count() == 3 && !call.integer(2, bits)) return;
  if (bits <= 0 || bits > most_bits) {
    return call.reply.error(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up "
        "to 4096");
  }
  std::array<unsigned char, most_bits / 8> random;
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1)
    return call.reply.error("ERR no random numbers can be had now");
  std::string text;
  for (std::int64_t i = 0; i < (bits + 3) / 4; ++i) {
    const unsigned char byte = random[static_cast<std::size_t>(i / 2)];
    text += "0123456789abcdef"[i % 2 == 0 ? byte >> 4 : byte & 15];
  }
  call.reply.bulk(text);
}

void reply_log_entry(const Call& call, const acl::Log::Entry& entry) {
  call.reply.map(7);
  call.reply.bulk("count");
  call.reply.integer(static_cast<std::int64_t>(entry.count));
  call.reply.bulk("reason");
  call.reply.bulk(text_of(entry.reason));
  call.reply.bulk("context");
  call.reply.bulk(text_of(entry.context));
  call.reply.bulk("object");
  call.reply.bulk(entry.object);
  call.reply.bulk("username");
  call.reply.bulk(entry.user);
  call.reply.bulk("age-seconds");
  call.reply.real(static_cast<double>(call.server.steady_ms - entry.at_ms) / 1000);
  call.reply.bulk("client-info");
  call.reply.bulk(entry.client);
}

void access_log(const Call& call) {
  if (call.count() > 3) return call.subcommand_error();
  acl::Log& log = call.server.access.log();
  if (call.count() == 3 && is_word(call[2], "RESET")) {
    log.clear();
    return call.reply.ok();
  }
  std::int64_t count = 10;
  if (call.count() == 3 && !call.integer(2, count)) return;
  const auto shown =
      std::min(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), log.entries().size());
  call.reply.array(shown);
  for (std::size_t i = 0; i < shown; ++i) reply_log_entry(call, log.entries()[i]);
}

void dryrun(const Call& call) {
  const acl::User* user = call.server.access.users().find(call[2]);
  if (user == nullptr) return call.reply.error("ERR User '" + std::string(call[2]) + "' not found");
  const Arguments words = call.arguments.subspan(3);
  const Command* command = find_command(words);
  if (command == nullptr)
    return call.reply.error("ERR Command '" + std::string(words[0].text) + "' not found");
  if (!command->takes(words.size()))
    return call.reply.error("ERR wrong number of arguments for '" + command->full_name() + "' command");
  const auto denied = acl::denial(*user, *command, words);
  if (!denied) return call.reply.ok();
  if (denied->what == acl::Denied::command) {
    return call.reply.bulk("This user has no permissions to run the '" + command->full_name() + "' command");
  }
  call.reply.bulk("This user has no permissions to access the '" + std::string(words[denied->argument].text) +
                  (denied->what == acl::Denied::key ? "' key" : "' channel"));
}

bool has_file(const Call& call) {
  if (!call.server.settings.aclfile.empty()) return true;
  call.reply.error(
      "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the "
      "ACL "
      "SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in "
      "order to store users in the Redis configuration.");
  return false;
}

void load(const Call& call) {
  if (!has_file(call)) return;
  const auto done = call.server.access.load_file();
  done ? call.reply.ok() : call.reply.error("ERR " + done.error());
}

void acl_save(const Call& call) {
  if (!has_file(call)) return;
  const auto done = call.server.access.save_file();
  if (done) return call.reply.ok();
  call.server.log(LogLevel::warning, "ACL SAVE failed: " + done.error());
  call.reply.error(
      "ERR There was an error trying to save the ACLs. Please check the server logs for more information");
}

void acl_help(const Call& call) {
  reply_help(call,
             {
                 "CAT [<category>]",
                 "    List all commands that belong to <category>, or all command categories",
                 "    when no category is specified.",
                 "DELUSER <username> [<username> ...]",
                 "    Delete a list of users.",
                 "DRYRUN <username> <command> [<arg> ...]",
                 "    Returns whether the user can execute the given command without executing the command.",
                 "GETUSER <username>",
                 "    Get the user's details.",
                 "GENPASS [<bits>]",
                 "    Generate a secure 256-bit user password. The optional `bits` argument can",
                 "    be used to specify a different size.",
                 "LIST",
                 "    Show users details in config file format.",
                 "LOAD",
                 "    Reload users from the ACL file.",
                 "LOG [<count> | RESET]",
                 "    Show the ACL log entries.",
                 "SAVE",
                 "    Save the current config to the ACL file.",
                 "SETUSER <username> <attribute> [<attribute> ...]",
                 "    Create or modify a user with the specified attributes.",
                 "USERS",
                 "    List all the registered usernames.",
                 "WHOAMI",
                 "    Return the current connection username.",
             });
}

constexpr Command of_acl(std::string_view name, int arity, std::uint32_t flags, void (*run)(const Call&),
                         std::string_view summary) {
  return {name, arity, flags, 0, 0, 0, run, "server", summary, {}, "acl"};
}

}  // namespace

std::span<const Command> acl_commands() {
  using namespace flag;
  constexpr std::uint32_t plain = noscript | loading | stale;
  constexpr std::uint32_t managing = admin | plain;
  static constexpr Command subcommands[] = {
      of_acl("cat", -2, plain, cat, "Names categories, or a category's commands."),
      of_acl("deluser", -3, managing, deluser, "Removes users."),
      of_acl("dryrun", -4, managing, dryrun, "Says whether a user may run a command."),
      of_acl("genpass", -2, plain, genpass, "Makes up a password."),
      of_acl("getuser", 3, managing, getuser, "Describes a user."),
      of_acl("help", 2, loading | stale, acl_help, "Explains ACL."),
      of_acl("list", 2, managing, list, "Describes the users."),
      of_acl("load", 2, managing, load, "Reads the users from the ACL file."),
      of_acl("log", -2, managing, access_log, "Tells what was refused."),
      of_acl("save", 2, managing, acl_save, "Writes the users to the ACL file."),
      of_acl("setuser", -3, managing, setuser, "Makes or changes a user."),
      of_acl("users", 2, managing, users, "Names the users."),
      of_acl("whoami", 2, plain, whoami, "Returns this client's user."),
  };
  static constexpr Command commands[] = {
      {"acl", -2, 0, 0, 0, 0, nullptr, "server", "Manages users and what they may do.", subcommands},
  };
  return commands;
}

}  // namespace weir::kv
