// All users, and the text that a file keeps of them.
//
// The default user is always there, and its address never changes: clients that have said nothing are it.
// Other users are theirs until they are removed; whoever removes one sees to its clients first.
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

  // A copy of the user, or a new one, with the rules applied; the error is a text as ACL SETUSER gives it.
  std::expected<User, std::string> changed(std::string_view name, std::span<const std::string> rules,
                                           Defaults defaults) const;
  // Puts it in the place of the user of that name, whose address stays.
  void put(User user);
  void remove(std::string_view name) { users_.erase(users_.find(name)); }

  // Lines of "user NAME RULE...", as in a file. The error names the file, the lines and what is wrong there.
  static std::expected<std::vector<User>, std::string> parse(std::string_view text, const std::string& file,
                                                             Defaults defaults);
  std::string text() const;

 private:
  Map users_;
  User* default_;
};

// A default user who may do everything, without a password.
User new_default_user();

// What is wrong with a line of a configuration file: the words behind "user". Empty: nothing.
std::string user_line_error(std::span<const std::string> words);

}  // namespace weir::kv::acl
