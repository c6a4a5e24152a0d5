// Numbers as text, exactly as Redis reads and prints them: what counts as an integer or a float decides which
// error a client sees, so these are protocol facts and not conveniences.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::kv {

// Strict decimal: no spaces, no plus sign, no leading zeros, fits in 64 bits.
std::optional<std::int64_t> parse_int(std::string_view text);

// A float as INCRBYFLOAT and ZADD take it: no leading space, nothing behind it, no NaN.
std::optional<double> parse_double(std::string_view text);
// The bound of a range of scores, which Redis reads with strtod alone: spaces before it, nothing at all (0)
// and what is beyond the limits of a double (infinity, 0) are let pass, NaN is not.
std::optional<double> parse_bound(std::string_view text);
std::optional<long double> parse_long_double(std::string_view text);

// "1gb", "64k" and so on, as redis.conf writes sizes.
std::optional<std::int64_t> parse_memory(std::string_view text);

// Decimal digits of `value` written into the end of a buffer; the view points into it.
using IntText = std::array<char, 24>;
std::string_view format_int(std::int64_t value, IntText& buffer);

// As RESP replies print doubles: integers without a fraction, else 17 significant digits.
std::string format_double(double value);
// As INCRBYFLOAT stores its result: fixed notation, 17 digits behind the point, trailing zeros removed.
std::string format_long_double_human(long double value);

}  // namespace weir::kv
