// The values that stand in a file of faults: numbers, ranges, times and shares. The errors are parts of a
// sentence that begins with the name of the value. Pure.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "faults/fault.hpp"

namespace weir::faults {

std::expected<std::uint64_t, std::string> number(std::string_view word, std::uint64_t max_value);
// "5", or "5..9".
std::expected<Range, std::string> range(std::string_view word, std::uint64_t min_value,
                                        std::uint64_t max_value);
// "80us", "1.5ms"; in nanoseconds.
std::expected<std::uint64_t, std::string> duration(std::string_view word);
// "0.01" or "1%".
std::expected<double, std::string> share(std::string_view word);

}  // namespace weir::faults
