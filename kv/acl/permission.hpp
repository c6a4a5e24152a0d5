// Whether a user may run a command with these arguments.
#pragma once

#include <cstdint>
#include <optional>

#include "kv/acl/user.hpp"
#include "kv/commands/command.hpp"

namespace weir::kv::acl {

enum class Denied : std::uint8_t { command, key, channel };

struct Denial {
  Denied what;
  std::size_t argument = 0;  // which key or channel
};

// Why the user may not; nothing: it may. Where each selector refuses for another reason, the one that comes
// closest is told.
std::optional<Denial> find_denial(const User& user, const Command& command, Arguments arguments);

inline std::optional<Denial> denial(const User& user, const Command& command, Arguments arguments) {
  if (user.may_do_everything()) return std::nullopt;
  return find_denial(user, command, arguments);
}

// Whether it may run the command whatever keys that reads: for patterns that name keys (SORT BY).
bool may_read_every_key(const User& user, const Command& command, Arguments arguments);

}  // namespace weir::kv::acl
