// Whether a user may run a command with these arguments.
#pragma once

#include <cstdint>
#include <optional>

#include "kv/acl/user.hpp"
#include "kv/command/command.hpp"

namespace weir::kv::acl {

enum class Denied : std::uint8_t { command, key, channel };

struct Denial {
  Denied what;
  std::size_t argument = 0;  // index of the key or channel
};

// Why the user may not run it; nullopt: the user may. If the selectors refuse for different reasons, returns
// the reason that comes closest.
std::optional<Denial> find_denial(const User& user, const Command& command, Arguments arguments);

inline std::optional<Denial> denial(const User& user, const Command& command, Arguments arguments) {
  if (user.may_do_everything()) return std::nullopt;
  return find_denial(user, command, arguments);
}

// Whether the user may run the command on every key that it reads: for patterns that name keys (SORT BY).
bool may_read_every_key(const User& user, const Command& command, Arguments arguments);

}  // namespace weir::kv::acl
