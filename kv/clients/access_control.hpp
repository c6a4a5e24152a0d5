// Access control of this server: its users (kv/acl/), the user of each client, and the log of refusals.
//
// Every client is some user, at first the default one. Client::authenticated() says whether it proved that.
// Threading: the server's one thread.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "kv/acl/log.hpp"
#include "kv/acl/permission.hpp"
#include "kv/acl/users.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

class Client;
struct ServerCommon;

class AccessControl {
 public:
  explicit AccessControl(ServerCommon& server) : server_(server) {}

  const acl::Users& users() const { return users_; }
  acl::Log& log() { return log_; }

  // Loads the users of the settings: requirepass, `user` lines, the ACL file. The error is for a user.
  std::expected<void, std::string> load_configured();
  // requirepass is the default user's only password; empty: no password is needed.
  void set_default_password(std::string_view password);

  // Whether a new client must give a password before anything else.
  bool asks_for_password() const {
    const acl::User& user = users_.default_user();
    return !user.needs_no_password() || !user.enabled();
  }
  // Makes the client the default user again, as it was when it connected.
  void reset(Client& client);
  // Returns false if there is no such user or the password is wrong. `said_with` is the
  // command's name, for the log.
  bool authenticate(Client& client, std::string_view name, std::string_view password,
                    std::string_view said_with);

  // Why the client may not run the command now; refusals go to the log. nullopt: it may.
  std::optional<acl::Denied> refusal(const Client& client, const Command& command, Arguments arguments,
                                     acl::Context context);

  // ACL SETUSER; the error is the text for the client.
  std::expected<void, std::string> set_user(std::string_view name, std::span<const std::string> rules);
  // Also closes the user's clients; returns false if there is no such user.
  bool remove_user(std::string_view name);
  std::expected<void, std::string> load_file();
  std::expected<void, std::string> save_file() const;

 private:
  acl::Defaults defaults() const;
  void replace_all(std::vector<acl::User> users);
  void close_clients_of(const acl::User& user);
  void close(Client& client);
  void close_those_who_hear_too_much(const acl::User& user);

  ServerCommon& server_;
  acl::Users users_;
  acl::Log log_;
};

// The text of an error: "NOPERM this user has no permissions to ...".
std::string denial_text(acl::Denied what, const Command& command);

}  // namespace weir::kv
