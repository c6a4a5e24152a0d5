#include "kv/acl/user.hpp"

#include <algorithm>

#include "kv/acl/passwords.hpp"
#include "kv/resp/words.hpp"

namespace weir::kv::acl {

std::optional<RuleError> User::apply(std::string_view rule, Defaults defaults) {
  if (rule.empty() || apply_word(rule, defaults)) return std::nullopt;
  if (std::string_view("><#!").find(rule[0]) != std::string_view::npos) return apply_password(rule);
  const auto error = rule[0] == '(' && rule.ends_with(')')
                         ? add_selector(rule.substr(1, rule.size() - 2), defaults)
                         : selectors_[0].apply(rule);
  everything_ = std::ranges::any_of(selectors_, &Selector::everything);
  return error;
}

// Applies a rule that is a single word; false: the word is unknown.
bool User::apply_word(std::string_view rule, Defaults defaults) {
  if (is_word(rule, "on") || is_word(rule, "off")) {
    enabled_ = is_word(rule, "on");
  } else if (is_word(rule, "sanitize-payload")) {
    sanitize_ = Sanitize::yes;
  } else if (is_word(rule, "skip-sanitize-payload")) {
    sanitize_ = Sanitize::skip;
  } else if (is_word(rule, "nopass") || is_word(rule, "resetpass")) {
    no_password_ = is_word(rule, "nopass");
    passwords_.clear();
  } else if (is_word(rule, "clearselectors")) {
    selectors_.resize(1);
  } else if (is_word(rule, "reset")) {
    *this = User(name_, defaults);
    sanitize_ = Sanitize::yes;
  } else {
    return false;
  }
  everything_ = std::ranges::any_of(selectors_, &Selector::everything);
  return true;
}

// >password, #digest, <password, !digest
std::optional<RuleError> User::apply_password(std::string_view rule) {
  const bool is_clear = rule[0] == '>' || rule[0] == '<';
  std::string digest(rule.substr(1));
  if (is_clear) {
    digest = password_digest(rule.substr(1));
  } else if (!is_digest(digest)) {
    return RuleError::bad_digest;
  }
  const auto known = std::ranges::find(passwords_, digest);
  if (rule[0] == '>' || rule[0] == '#') {
    if (known == passwords_.end()) passwords_.push_back(std::move(digest));
    no_password_ = false;
    return std::nullopt;
  }
  if (known == passwords_.end()) return RuleError::no_such_password;
  passwords_.erase(known);
  return std::nullopt;
}

std::optional<RuleError> User::add_selector(std::string_view rules, Defaults defaults) {
  const auto words = split_words(rules);
  if (!words) return RuleError::syntax;
  Selector selector(defaults.every_channel);
  for (const std::string& word : *words) {
    if (const auto error = selector.apply(word)) return error;
  }
  selectors_.push_back(std::move(selector));
  return std::nullopt;
}

bool User::accepts(std::string_view digest) const {
  const bool known = contains_digest(passwords_, digest);
  return enabled_ && (no_password_ || known);
}

bool User::may_hear_channel(std::string_view channel) const {
  return std::ranges::any_of(selectors_, [&](const Selector& one) { return one.allows_channel(channel); });
}
bool User::may_hear_pattern(std::string_view pattern) const {
  return std::ranges::any_of(selectors_,
                             [&](const Selector& one) { return one.allows_channel_pattern(pattern); });
}

std::vector<std::string_view> User::flags() const {
  std::vector<std::string_view> flags{enabled_ ? "on" : "off"};
  if (no_password_) flags.emplace_back("nopass");
  if (sanitize_ == Sanitize::skip) flags.emplace_back("skip-sanitize-payload");
  if (sanitize_ == Sanitize::yes) flags.emplace_back("sanitize-payload");
  return flags;
}

std::string User::text() const {
  std::string text;
  for (std::string_view flag : flags()) text.append(flag).append(1, ' ');
  for (const std::string& password : passwords_) text.append(1, '#').append(password).append(1, ' ');
  text += selectors_[0].text();
  for (const Selector& selector : std::span(selectors_).subspan(1)) text += " (" + selector.text() + ')';
  return text;
}

std::expected<std::vector<std::string>, std::string> join_selectors(std::span<const std::string> words) {
  std::vector<std::string> joined;
  const std::string* open = nullptr;  // the word that opened a selector which is not yet closed
  for (const std::string& word : words) {
    if (open != nullptr) {
      joined.back().append(1, ' ').append(word);
      if (word.ends_with(')')) open = nullptr;
    } else {
      joined.push_back(word);
      if (word.starts_with('(') && !word.ends_with(')')) open = &word;
    }
  }
  if (open != nullptr) return std::unexpected(*open);
  return joined;
}

}  // namespace weir::kv::acl
