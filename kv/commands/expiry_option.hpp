// Expiry times in commands: seconds or milliseconds, from now or since 1970.
#pragma once

#include <cstdint>

#include "kv/call/call.hpp"
#include "kv/command/command.hpp"

namespace weir::kv {

enum class ExpiryUnit : std::uint8_t { seconds, milliseconds };
enum class ExpiryBase : std::uint8_t { from_now, absolute };

struct ExpiryForm {
  ExpiryUnit unit;
  ExpiryBase base;
};

// EX, PX, EXAT or PXAT; false: another word.
bool expiry_form(std::string_view word, ExpiryForm& form);

// Converts the time in argument `argument` to ms since 1970; it must be positive and after 1970. Replies with
// the error and returns false if it is wrong.
bool expiry_time(const Call& call, std::size_t argument, ExpiryForm form, std::int64_t& at_ms);

}  // namespace weir::kv
