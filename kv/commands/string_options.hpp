// The options of commands that set whole strings: under which condition, and when the key expires.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"
#include "kv/commands/expiry_option.hpp"

namespace weir::kv {

struct StringOptions {
  enum class Exists : std::uint8_t { any, must, must_not };

  Exists exists = Exists::any;
  std::size_t equal_at = 0;  // the argument that the value must be equal to; 0: none
  bool get = false;
  bool keep_ttl = false;
  bool expires = false;
  ExpiryForm form{};
  std::size_t time_at = 0;  // the argument with the time
};

// GET and IFEQ are about one key.
enum class OptionsFor : std::uint8_t { one_key, several_keys };

// Parses the options from argument `at` to the end; false: syntax error.
bool parse_string_options(const Call& call, std::size_t at, OptionsFor keys, StringOptions& options);

}  // namespace weir::kv
