// All users, and the text that a file stores of them.
//
// The default user always exists at the same address; a client that has not authenticated is this user.
// Another user's address is valid until the user is removed, so its clients must be handled first.
#pragma once

#include <expected>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kv/acl/user.hpp"

namespace weir::kv::acl {

class Users {
 public:
  using Map = std::map<std::string, std::unique_ptr<User>, std::less<>>;

  Users();

  User& default_user() { return *default_; }
  const User& default_user() const { return *default_; }
  User* find(std::string_view name) const;
  const Map& all() const { return users_; }

  // A copy of the user, or a new one, with the rules applied. The error is the text of ACL SETUSER.
  std::expected<User, std::string> changed(std::string_view name, std::span<const std::string> rules,
                                           Defaults defaults) const;
  // Replaces the user of that name, whose address does not change.
  void put(User user);
  void remove(std::string_view name) { users_.erase(users_.find(name)); }

  // Parses a file's lines "user NAME RULE...". The error names the file, the lines and the problems.
  static std::expected<std::vector<User>, std::string> parse(std::string_view text, const std::string& file,
                                                             Defaults defaults);
  std::string text() const;

 private:
  Map users_;
  User* default_;
};

// A default user that may do everything, without a password.
User new_default_user();

// What is wrong with a configuration line's words after "user". Empty: nothing.
std::string user_line_error(std::span<const std::string> words);

}  // namespace weir::kv::acl
