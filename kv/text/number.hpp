// Numbers as text, read and printed exactly as Redis does. What counts as an integer or a float decides which
// error a client sees, so these are protocol facts, not conveniences.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::kv {

// Strict decimal: no spaces, no plus sign, no leading zeros, fits in 64 bits.
std::optional<std::int64_t> parse_int(std::string_view text);

// A float for INCRBYFLOAT and ZADD: no leading space, nothing after it, not NaN.
std::optional<double> parse_double(std::string_view text);
// The bound of a range of scores, which Redis reads with plain strtod. Leading spaces, an empty text (0) and
// numbers beyond the range of a double (infinity, 0) are accepted; NaN is not.
std::optional<double> parse_bound(std::string_view text);
std::optional<long double> parse_long_double(std::string_view text);

// Sizes in the form of redis.conf: "1gb", "64k" and so on.
std::optional<std::int64_t> parse_memory(std::string_view text);

// Writes the decimal digits of `value` at the end of a buffer; the result points into it.
using IntText = std::array<char, 24>;
std::string_view format_int(std::int64_t value, IntText& buffer);

// As RESP replies print doubles: integers without a fraction, others with 17 significant digits.
std::string format_double(double value);
// As INCRBYFLOAT stores its result: fixed notation, 17 digits after the point, no trailing zeros.
std::string format_long_double_human(long double value);

}  // namespace weir::kv
