// A user: its passwords, and the selectors of which each may allow a command.
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

// What a new user is before the first rule.
struct Defaults {
  bool every_channel = false;  // acl-pubsub-default
};

class User {
 public:
  User(std::string name, Defaults defaults)
      : name_(std::move(name)), selectors_{Selector(defaults.every_channel)} {}

  const std::string& name() const { return name_; }
  // One rule; unchanged where it fails.
  std::optional<RuleError> apply(std::string_view rule, Defaults defaults);

  bool enabled() const { return enabled_; }
  bool needs_no_password() const { return no_password_; }
  // May come in with this password, whose digest it is.
  bool accepts(std::string_view digest) const;

  // Whether there is nothing it may not do: then nothing else need be asked.
  bool may_do_everything() const { return everything_; }
  // The first is the user's own, the others are those in parentheses.
  const std::vector<Selector>& selectors() const { return selectors_; }
  bool may_hear_channel(std::string_view channel) const;
  bool may_hear_pattern(std::string_view pattern) const;

  std::vector<std::string_view> flags() const;
  const std::vector<std::string>& passwords() const { return passwords_; }
  // "on #digest ~* &* +@all": the rules that make it again.
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

// Words in which a selector's parentheses may hold several of them, as one word for each rule. The error is
// the word where a selector begins that does not end.
std::expected<std::vector<std::string>, std::string> join_selectors(std::span<const std::string> words);

}  // namespace weir::kv::acl
