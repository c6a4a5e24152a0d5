#include "kv/acl/users.hpp"

#include <algorithm>

namespace weir::kv::acl {

namespace {

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::vector<std::string> split_at_spaces(std::string_view line) {
  std::vector<std::string> words;
  for (;;) {
    const std::size_t end = std::min(line.find(' '), line.size());
    words.emplace_back(without_blanks(line.substr(0, end)));
    if (end == line.size()) return words;
    line.remove_prefix(end + 1);
  }
}

// Reads a file of users line by line and collects the errors.
class UserFile {
 public:
  UserFile(const std::string& file, Defaults defaults) : file_(file), defaults_(defaults) {}

  void read(std::string_view line, std::size_t number) {
    line = without_blanks(line);
    if (line.empty()) return;
    const std::string place = file_ + ':' + std::to_string(number);
    const std::vector<std::string> words = split_at_spaces(line);
    if (words[0] != "user" || words.size() < 2) {
      errors_ += place + " should start with user keyword followed by the username. ";
      return;
    }
    if (!is_one_word(words[1])) {
      errors_ += '\'' + place + ": username '" + words[1] + "' contains invalid characters. ";
      return;
    }
    if (std::ranges::find(users_, words[1], &User::name) != users_.end()) {
      errors_ += "WARNING: Duplicate user '" + words[1] + "' found on line " + std::to_string(number) + ". ";
      return;
    }
    const auto rules = join_selectors(std::span(words).subspan(2));
    if (!rules) {
      errors_ += place + ": Unmatched parenthesis in selector definition.";
      return;
    }
    apply(users_.emplace_back(words[1], defaults_), *rules, place);
  }

  std::expected<std::vector<User>, std::string> result() {
    if (errors_.empty()) return std::move(users_);
    return std::unexpected(
        errors_ + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed");
  }

 private:
  // Every unknown command is reported. Of other errors, which may show a secret, only the first.
  void apply(User& user, const std::vector<std::string>& rules, const std::string& place) {
    bool told = false;
    for (const std::string& rule : rules) {
      const auto error = user.apply(rule, defaults_);
      if (!error) continue;
      const std::string reason(error_text(*error));
      if (*error == RuleError::unknown_command) {
        errors_ += place + ": Error in applying operation '" + rule + "': " + reason + ". ";
      } else if (!std::exchange(told, true)) {
        errors_ += place + ": " + reason + ". ";
      }
    }
  }

  const std::string& file_;
  Defaults defaults_;
  std::vector<User> users_;
  std::string errors_;
};

}  // namespace

User new_default_user() {
  User user("default", {});
  for (std::string_view rule : {"+@all", "~*", "&*", "on", "nopass"}) user.apply(rule, {});
  return user;
}

Users::Users() {
  auto fresh = std::make_unique<User>(new_default_user());
  default_ = fresh.get();
  users_.emplace("default", std::move(fresh));
}

User* Users::find(std::string_view name) const {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second.get();
}

std::expected<User, std::string> Users::changed(std::string_view name, std::span<const std::string> words,
                                                Defaults defaults) const {
  const auto rules = join_selectors(words);
  if (!rules)
    return std::unexpected("Unmatched parenthesis in acl selector starting at '" + rules.error() + "'.");
  const User* known = find(name);
  User user = known != nullptr ? *known : User(std::string(name), defaults);
  for (const std::string& rule : *rules) {
    if (const auto error = user.apply(rule, defaults)) {
      return std::unexpected("Error in ACL SETUSER modifier '" + rule +
                             "': " + std::string(error_text(*error)));
    }
  }
  return user;
}

void Users::put(User user) {
  std::unique_ptr<User>& place = users_[user.name()];
  if (place == nullptr) {
    place = std::make_unique<User>(std::move(user));
  } else {
    *place = std::move(user);
  }
}

std::expected<std::vector<User>, std::string> Users::parse(std::string_view text, const std::string& file,
                                                           Defaults defaults) {
  UserFile users(file, defaults);
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    users.read(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return users.result();
}

std::string Users::text() const {
  std::string text;
  for (const auto& [name, user] : users_) text.append("user " + name + ' ' + user->text()).append(1, '\n');
  return text;
}

std::string user_line_error(std::span<const std::string> words) {
  const auto error_at = [](const std::string& word, std::string_view reason) {
    return "Error in user declaration '" + word + "': " + std::string(reason);
  };
  if (words.empty()) return "Bad directive or wrong number of arguments";
  if (!is_one_word(words[0])) return "Spaces not allowed in ACL usernames";
  const auto rules = join_selectors(words.subspan(1));
  if (!rules) return error_at(rules.error(), "Unmatched parenthesis in acl selector");
  User user(words[0], {});
  for (const std::string& rule : *rules) {
    if (const auto error = user.apply(rule, {})) return error_at(rule, error_text(*error));
  }
  return {};
}

}  // namespace weir::kv::acl
