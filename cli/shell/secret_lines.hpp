// Which lines contain a password and must not go into a history file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weir::shell {

// "5 PING" runs PING five times: removes the number. 1 if there is none.
long long take_repeat(std::vector<std::string>& words);

// AUTH, HELLO and MIGRATE with arguments, ACL SETUSER and the like, CONFIG SET of a password. A line that
// cannot be split into words may contain anything.
bool may_hold_secret(std::string_view line);

}  // namespace weir::shell
