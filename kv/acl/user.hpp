// A user: passwords, and selectors, each of which may allow a command.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/acl/selector.hpp"

namespace weir::kv::acl {

// A new user's state before the first rule.
struct Defaults {
  bool every_channel = false;  // acl-pubsub-default
};

class User {
 public:
  User(std::string name, Defaults defaults)
      : name_(std::move(name)), selectors_{Selector(defaults.every_channel)} {}

  const std::string& name() const { return name_; }
  // Applies one rule; on error the user is unchanged.
  std::optional<RuleError> apply(std::string_view rule, Defaults defaults);

  bool enabled() const { return enabled_; }
  bool needs_no_password() const { return no_password_; }
  // Whether the user may log in with the password that has this digest.
  bool accepts(std::string_view digest) const;

  // Whether the user may do everything; then no further check is needed.
  bool may_do_everything() const { return everything_; }
  // The first selector is the user's own; the others are those in parentheses.
  const std::vector<Selector>& selectors() const { return selectors_; }
  bool may_hear_channel(std::string_view channel) const;
  bool may_hear_pattern(std::string_view pattern) const;

  std::vector<std::string_view> flags() const;
  const std::vector<std::string>& passwords() const { return passwords_; }
  // The rules that make an equal user: "on #digest ~* &* +@all".
  std::string text() const;

 private:
  enum class Sanitize : std::uint8_t { unsaid, yes, skip };

  bool apply_word(std::string_view rule, Defaults defaults);
  std::optional<RuleError> apply_password(std::string_view rule);
  std::optional<RuleError> add_selector(std::string_view rules, Defaults defaults);

  std::string name_;
  bool enabled_ = false;
  bool no_password_ = false;
  bool everything_ = false;
  Sanitize sanitize_ = Sanitize::unsaid;
  std::vector<std::string> passwords_;
  std::vector<Selector> selectors_;
};

// Joins the words of a selector in parentheses into one word, so that there is one word for each rule. The
// error is the word that opens a selector which is never closed.
std::expected<std::vector<std::string>, std::string> join_selectors(std::span<const std::string> words);

}  // namespace weir::kv::acl
