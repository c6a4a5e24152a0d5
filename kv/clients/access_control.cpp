#include "kv/clients/access_control.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "kv/acl/passwords.hpp"
#include "kv/clients/client.hpp"
#include "kv/clients/client_line.hpp"
#include "kv/core/server_common.hpp"
#include "kv/settings/replaced_file.hpp"

namespace weir::kv {

namespace {

std::expected<std::string, std::string> read_acl_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  std::string text;
  bool read = file != nullptr;
  if (file != nullptr) {
    char block[4096];
    for (std::size_t got; (got = std::fread(block, 1, sizeof block, file)) != 0;) text.append(block, got);
    read = std::ferror(file) == 0;
    const int reason = errno;
    std::fclose(file);
    errno = reason;
  }
  if (read) return text;
  return std::unexpected("Error loading ACLs, opening file '" + path + "': " + std::strerror(errno));
}

acl::Reason reason_of(acl::Denied what) {
  switch (what) {
    case acl::Denied::key:
      return acl::Reason::key;
    case acl::Denied::channel:
      return acl::Reason::channel;
    default:
      return acl::Reason::command;
  }
}

}  // namespace

std::string denial_text(acl::Denied what, const Command& command) {
  switch (what) {
    case acl::Denied::key:
      return "NOPERM this user has no permissions to access one of the keys used as arguments";
    case acl::Denied::channel:
      return "NOPERM this user has no permissions to access one of the channels used as arguments";
    default:
      return "NOPERM this user has no permissions to run the '" + command.full_name() + "' command";
  }
}

acl::Defaults AccessControl::defaults() const { return {server_.settings.acl_pubsub_default == 0}; }

std::expected<void, std::string> AccessControl::load_configured() {
  const Settings& settings = server_.settings;
  if (!settings.requirepass.empty()) set_default_password(settings.requirepass);
  if (!settings.aclfile.empty() && !settings.users.empty())
    return std::unexpected("users are configured twice: by user lines and by --aclfile; only one may be");
  for (const std::vector<std::string>& words : settings.users) {
    std::vector<std::string> rules(words.begin() + 1, words.end());
    if (words[0] == "default") rules.insert(rules.begin(), "reset");
    if (auto done = set_user(words[0], rules); !done) return done;
    if (!users_.find(words[0])->enabled()) {
      server_.log(LogLevel::notice, "the user '" + words[0] + "' is disabled: its line does not say 'on'");
    }
  }
  if (settings.aclfile.empty()) return {};
  return load_file();
}

void AccessControl::set_default_password(std::string_view password) {
  acl::User& user = users_.default_user();
  user.apply("resetpass", defaults());
  user.apply(password.empty() ? std::string("nopass") : '>' + std::string(password), defaults());
}

void AccessControl::reset(Client& client) {
  client.user = &users_.default_user();
  asks_for_password() ? client.become_stranger() : client.let_in();
}

bool AccessControl::authenticate(Client& client, std::string_view name, std::string_view password,
                                 std::string_view said_with) {
  // Also computed for users that do not exist, so that the time taken does not reveal which users exist.
  const std::string digest = acl::password_digest(password);
  const acl::User* user = users_.find(name);
  if (user != nullptr && user->accepts(digest)) {
    client.user = user;
    client.let_in();
    return true;
  }
  const acl::Context context = client.transaction.open ? acl::Context::multi : acl::Context::toplevel;
  log_.add({acl::Reason::auth, context, std::string(said_with), std::string(name),
            describe_client(client, server_.steady_ms), server_.steady_ms},
           static_cast<std::size_t>(server_.settings.acllog_max_len));
  return false;
}

std::optional<acl::Denied> AccessControl::refusal(const Client& client, const Command& command,
                                                  Arguments arguments, acl::Context context) {
  const auto denied = acl::denial(*client.user, command, arguments);
  if (!denied) return std::nullopt;
  const bool by_name = denied->what == acl::Denied::command;
  log_.add({reason_of(denied->what), context,
            by_name ? command.full_name() : std::string(arguments[denied->argument].text),
            client.user->name(), describe_client(client, server_.steady_ms), server_.steady_ms},
           static_cast<std::size_t>(server_.settings.acllog_max_len));
  return denied->what;
}

std::expected<void, std::string> AccessControl::set_user(std::string_view name,
                                                         std::span<const std::string> rules) {
  auto changed = users_.changed(name, rules, defaults());
  if (!changed) return std::unexpected(changed.error());
  const bool known = users_.find(name) != nullptr;
  users_.put(std::move(*changed));
  if (known) close_those_who_hear_too_much(*users_.find(name));
  return {};
}

bool AccessControl::remove_user(std::string_view name) {
  const acl::User* user = users_.find(name);
  if (user == nullptr) return false;
  close_clients_of(*user);
  users_.remove(name);
  return true;
}

void AccessControl::close(Client& client) {
  if (&client != server_.serving) return client.close();
  client.close_after_reply = true;  // it must still get the answer to its command
}

void AccessControl::close_clients_of(const acl::User& user) {
  std::vector<Client*> going;
  for (const auto& [id, client] : server_.clients) {
    if (client->user == &user) going.push_back(client.get());
  }
  for (Client* client : going) {
    client->user = &users_.default_user();
    client->become_stranger();
    close(*client);
  }
}

// Closes the user's clients that are subscribed to channels which the user may no longer hear.
void AccessControl::close_those_who_hear_too_much(const acl::User& user) {
  if (user.may_do_everything()) return;
  const auto hears_too_much = [&user](const Subscriptions& heard) {
    const auto may_not = [&user](const std::string& channel) { return !user.may_hear_channel(channel); };
    return std::ranges::any_of(heard.channels, may_not) ||
           std::ranges::any_of(heard.shard_channels, may_not) ||
           std::ranges::any_of(heard.patterns, [&user](const std::string& pattern) {
             return !user.may_hear_pattern(pattern);
           });
  };
  std::vector<Client*> going;
  for (const auto& [id, client] : server_.clients) {
    if (client->user == &user && hears_too_much(client->subscriptions)) going.push_back(client.get());
  }
  for (Client* client : going) close(*client);
}

std::expected<void, std::string> AccessControl::load_file() {
  const std::string& path = server_.settings.aclfile;
  const auto text = read_acl_file(path);
  if (!text) return std::unexpected(text.error());
  auto users = acl::Users::parse(*text, path, defaults());
  if (!users) return std::unexpected(users.error());
  replace_all(std::move(*users));
  return {};
}

// Only the file's users remain. The clients of all others but the default user are closed, as in Redis.
void AccessControl::replace_all(std::vector<acl::User> users) {
  std::vector<std::string> names;
  for (const auto& [name, user] : users_.all()) {
    if (user.get() != &users_.default_user()) names.push_back(name);
  }
  for (const std::string& name : names) remove_user(name);
  const bool names_default =
      std::ranges::find(users, users_.default_user().name(), &acl::User::name) != users.end();
  if (!names_default) users_.put(acl::new_default_user());
  for (acl::User& user : users) users_.put(std::move(user));
  close_those_who_hear_too_much(users_.default_user());
}

std::expected<void, std::string> AccessControl::save_file() const {
  return replace_file(server_.settings.aclfile, users_.text(), "the ACL file");
}

}  // namespace weir::kv
