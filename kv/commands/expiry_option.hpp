// Expiry times as commands take them: seconds or milliseconds, from now or since 1970.
#pragma once

#include <cstdint>

#include "kv/commands/command.hpp"

namespace weir::kv {

enum class ExpiryUnit : std::uint8_t { seconds, milliseconds };
enum class ExpiryBase : std::uint8_t { from_now, absolute };

struct ExpiryForm {
  ExpiryUnit unit;
  ExpiryBase base;
};

// EX, PX, EXAT or PXAT; false: none of them.
bool expiry_form(std::string_view word, ExpiryForm& form);

// The time argument `argument` says, in ms since 1970; it must lie after 1970 and be positive. Answers the
// client and returns false when it is wrong.
bool expiry_time(const Call& call, std::size_t argument, ExpiryForm form, std::int64_t& at_ms);

}  // namespace weir::kv
