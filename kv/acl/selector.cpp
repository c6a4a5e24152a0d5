#include "kv/acl/selector.hpp"

#include <algorithm>
#include <cctype>

#include "kv/text/glob.hpp"

namespace weir::kv::acl {

std::string_view error_text(RuleError error) {
  switch (error) {
    case RuleError::unknown_command:
      return "Unknown command or category name in ACL";
    case RuleError::syntax:
      return "Syntax error";
    case RuleError::key_after_all:
      return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have "
             "any "
             "effect. Try 'resetkeys' to start with an empty list of patterns";
    case RuleError::channel_after_all:
      return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not "
             "have "
             "any effect. Try 'resetchannels' to start with an empty list of channels";
    case RuleError::no_such_password:
      return "The password you are trying to remove from the user does not exist";
    case RuleError::bad_digest:
      return "The password hash must be exactly 64 characters and contain only lowercase hexadecimal "
             "characters";
    case RuleError::argument_of_subcommand:
      return "Allowing first-arg of a subcommand is not supported";
  }
  return "Wrong format";
}

bool is_one_word(std::string_view text) {
  return std::ranges::none_of(
      text, [](char c) { return c == '\0' || std::isspace(static_cast<unsigned char>(c)) != 0; });
}

std::optional<RuleError> Selector::apply(std::string_view rule) {
  if (apply_word(rule)) return std::nullopt;
  switch (rule.empty() ? '\0' : rule[0]) {
    case '~':
    case '%':
      return apply_key(rule);
    case '&':
      return apply_channel(rule.substr(1));
    case '+':
    case '-':
      if (rule.substr(1).starts_with('@')) return apply_category(rule.substr(2), rule[0] == '+');
      return apply_command(rule.substr(1), rule[0] == '+');
    default:
      return RuleError::syntax;
  }
}

// Applies a rule that is a single word; false: the word is unknown.
bool Selector::apply_word(std::string_view rule) {
  const auto is = [rule](std::string_view word, std::string_view other) {
    return is_word(rule, word) || is_word(rule, other);
  };
  if (is("allkeys", "~*") || is_word(rule, "resetkeys")) {
    every_key_ = !is_word(rule, "resetkeys");
    keys_.clear();
  } else if (is("allchannels", "&*") || is_word(rule, "resetchannels")) {
    every_channel_ = !is_word(rule, "resetchannels");
    channels_.clear();
  } else if (is("allcommands", "+@all")) {
    set_all(true);
  } else if (is("nocommands", "-@all")) {
    set_all(false);
  } else {
    return false;
  }
  return true;
}

// ~pattern, %R~pattern, %W~pattern, %RW~pattern
std::optional<RuleError> Selector::apply_key(std::string_view rule) {
  if (every_key_) return RuleError::key_after_all;
  KeyPattern pattern{{}, rule[0] == '~', rule[0] == '~'};
  const std::size_t tilde = rule.find('~');
  if (tilde == std::string_view::npos) return RuleError::syntax;
  for (const char letter : rule.substr(0, tilde).substr(std::min<std::size_t>(1, tilde))) {
    bool& right = letter == 'R' || letter == 'r' ? pattern.read : pattern.write;
    if ((&right == &pattern.write && letter != 'W' && letter != 'w') || right) return RuleError::syntax;
    right = true;
  }
  pattern.text = rule.substr(tilde + 1);
  if ((!pattern.read && !pattern.write) || !is_one_word(pattern.text)) return RuleError::syntax;
  const auto known = std::ranges::find(keys_, pattern.text, &KeyPattern::text);
  if (known == keys_.end()) {
    keys_.push_back(std::move(pattern));
  } else {
    known->read |= pattern.read;
    known->write |= pattern.write;
  }
  return std::nullopt;
}

std::optional<RuleError> Selector::apply_channel(std::string_view pattern) {
  if (every_channel_) return RuleError::channel_after_all;
  if (!is_one_word(pattern)) return RuleError::syntax;
  if (std::ranges::find(channels_, pattern) == channels_.end()) channels_.emplace_back(pattern);
  return std::nullopt;
}

// get, config|get, select|0
std::optional<RuleError> Selector::apply_command(std::string_view name, bool allow) {
  const std::size_t bar = allow ? name.rfind('|') : std::string_view::npos;
  const Command* command = find_full_name(name.substr(0, bar));
  if (command == nullptr) return RuleError::unknown_command;
  if (bar != std::string_view::npos) {
    const std::string_view argument = name.substr(bar + 1);
    if (!command->container.empty()) return RuleError::argument_of_subcommand;
    if (argument.empty()) return RuleError::syntax;
    if (command->subcommands.empty()) {
      auto& allowed = first_arguments_[command->id];
      if (std::ranges::none_of(allowed, [&](const std::string& one) { return is_word(argument, one); }))
        allowed.emplace_back(argument);
      return std::nullopt;
    }
    command = find_subcommand(*command, argument);
    if (command == nullptr) return RuleError::unknown_command;
  }
  first_arguments_.erase(command->id);
  set(bits_of(*command), allow);
  return std::nullopt;
}

std::optional<RuleError> Selector::apply_category(std::string_view name, bool allow) {
  const Category* category = find_category(name);
  if (category == nullptr) return RuleError::unknown_command;
  std::erase_if(first_arguments_, [&](const auto& row) { return category->members.test(row.first); });
  set(category->covers, allow);
  return std::nullopt;
}

void Selector::set(const CommandBits& bits, bool allow) {
  if (allow) {
    commands_ |= bits;
  } else {
    commands_ &= ~bits;
    every_command_ = false;
  }
}

void Selector::set_all(bool allow) {
  commands_ = allow ? every_command() : CommandBits();
  every_command_ = future_commands_ = allow;
  first_arguments_.clear();
}

bool Selector::allows_first_argument(const Command& command, Arguments arguments) const {
  const auto allowed = first_arguments_.find(command.id);
  const std::size_t at = command.container.empty() ? 1 : 2;
  if (allowed == first_arguments_.end() || arguments.size() <= at) return false;
  return std::ranges::any_of(allowed->second,
                             [&](const std::string& one) { return is_word(arguments[at].text, one); });
}

bool Selector::allows_key(std::string_view key, bool reads, bool writes) const {
  if (every_key_) return true;
  return std::ranges::any_of(keys_, [&](const KeyPattern& pattern) {
    return (pattern.read || !reads) && (pattern.write || !writes) && glob_match(pattern.text, key);
  });
}

bool Selector::reads_every_key() const {
  return every_key_ || std::ranges::any_of(keys_, [](const KeyPattern& pattern) {
           return pattern.read && pattern.text == "*";
         });
}

bool Selector::allows_channel(std::string_view channel) const {
  return every_channel_ || std::ranges::any_of(channels_, [&](const std::string& pattern) {
           return glob_match(pattern, channel);
         });
}

bool Selector::allows_channel_pattern(std::string_view pattern) const {
  return every_channel_ || std::ranges::find(channels_, pattern) != channels_.end();
}

std::string Selector::keys_text() const {
  if (every_key_) return "~*";
  std::string text;
  for (const KeyPattern& pattern : keys_) {
    text += text.empty() ? "" : " ";
    text += pattern.read && pattern.write ? "~" : pattern.read ? "%R~" : "%W~";
    text += pattern.text;
  }
  return text;
}

std::string Selector::channels_text() const {
  if (every_channel_) return "&*";
  std::string text;
  for (const std::string& pattern : channels_) text.append(text.empty() ? "&" : " &").append(pattern);
  return text;
}

std::string Selector::text() const {
  std::string line = keys_text();
  if (!line.empty()) line += ' ';
  if (!every_channel_) line += "resetchannels ";
  if (every_channel_ || !channels_.empty()) line += channels_text() + ' ';
  return line + commands_text();
}

namespace {

// The category that best describes the bits `left`. More of its commands must belong in the text than not.
// Among those with the fewest commands to correct, it has the most right ones. Null: none helps.
const Category* best_category(const CommandBits& left, const std::vector<const Category*>& used) {
  const Category* best = nullptr;
  std::size_t fewest_wrong = most_commands;
  std::size_t most_right = 0;
  for (const Category& category : all_categories()) {
    if (std::ranges::find(used, &category) != used.end()) continue;
    const std::size_t right = (left & category.members).count();
    const std::size_t wrong = category.members.count() - right;
    if (right <= wrong) continue;
    if (wrong > fewest_wrong || (wrong == fewest_wrong && right <= most_right)) continue;
    best = &category;
    fewest_wrong = wrong;
    most_right = right;
  }
  return best;
}

}  // namespace

std::string Selector::commands_text() const {
  // Starting from nothing it lists what is added, and starting from everything what is taken away.
  const bool adds = !future_commands_;
  std::string text = adds ? "-@all" : "+@all";
  CommandBits mentioned;  // commands added or taken away
  CommandBits left = (adds ? commands_ : ~commands_) & every_command();
  const CommandBits wanted = left;
  std::vector<const Category*> used;
  while (const Category* best = best_category(left, used)) {
    text.append(adds ? " +@" : " -@").append(best->name);
    mentioned |= best->covers;
    left &= ~best->covers;
    used.push_back(best);
  }
  const auto correct = [&](const Command& command) {
    if (wanted.test(command.id) != mentioned.test(command.id)) {
      text.append(wanted.test(command.id) == adds ? " +" : " -").append(command.full_name());
      const CommandBits bits = bits_of(command);
      wanted.test(command.id) ? mentioned |= bits : mentioned &= ~bits;
    }
  };
  for (const Command* command : all_commands()) {
    correct(*command);
    for (const Command& sub : command->subcommands) correct(sub);
    const auto arguments = first_arguments_.find(command->id);
    if (arguments == first_arguments_.end() || commands_.test(command->id)) continue;
    for (const std::string& argument : arguments->second)
      text.append(" +").append(command->name).append("|").append(argument);
  }
  return text;
}

}  // namespace weir::kv::acl
