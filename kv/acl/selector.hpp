// One set of permissions: which commands, on which keys and channels.
//
// Rules, in Redis's words, change it one at a time. Permissions are stored for fast checks: one bit per
// command, and flags for "all". Its text is the list of rules that makes an equal selector.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kv/acl/categories.hpp"
#include "kv/command/command.hpp"

namespace weir::kv::acl {

enum class RuleError : std::uint8_t {
  unknown_command,
  syntax,
  key_after_all,
  channel_after_all,
  no_such_password,
  bad_digest,
  argument_of_subcommand,
};
std::string_view error_text(RuleError error);

// Whether the text can stand as one name or pattern in a line of words.
bool is_one_word(std::string_view text);

class Selector {
 public:
  explicit Selector(bool every_channel = false) : every_channel_(every_channel) {}

  // On error the selector is unchanged.
  std::optional<RuleError> apply(std::string_view rule);

  bool allows(const Command& command, Arguments arguments) const {
    return every_command_ || command.has(flag::no_auth) || commands_.test(command.id) ||
           allows_first_argument(command, arguments);
  }
  bool allows_key(std::string_view key, bool reads, bool writes) const;
  bool allows_channel(std::string_view channel) const;
  // Subscribing to a pattern requires that exactly that pattern is allowed.
  bool allows_channel_pattern(std::string_view pattern) const;
  bool every_key() const { return every_key_; }
  bool every_channel() const { return every_channel_; }
  bool everything() const { return every_command_ && every_key_ && every_channel_; }
  // Whether it may read every key.
  bool reads_every_key() const;

  // "-@all +get", "~a %R~b", "&news"
  std::string commands_text() const;
  std::string keys_text() const;
  std::string channels_text() const;
  std::string text() const;

 private:
  struct KeyPattern {
    std::string text;
    bool read, write;
  };

  bool allows_first_argument(const Command& command, Arguments arguments) const;
  bool apply_word(std::string_view rule);
  std::optional<RuleError> apply_key(std::string_view rule);
  std::optional<RuleError> apply_channel(std::string_view pattern);
  std::optional<RuleError> apply_command(std::string_view name, bool allow);
  std::optional<RuleError> apply_category(std::string_view name, bool allow);
  void set(const CommandBits& bits, bool allow);
  void set_all(bool allow);

  CommandBits commands_;
  bool every_command_ = false;    // nothing was removed since +@all
  bool future_commands_ = false;  // it began with +@all, whatever was removed since
  bool every_key_ = false;
  bool every_channel_ = false;
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
  // For commands that are not allowed as a whole: they are allowed with one of these as first argument.
  std::map<std::uint16_t, std::vector<std::string>> first_arguments_;
};

}  // namespace weir::kv::acl
