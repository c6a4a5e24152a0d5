// The HTML page of a report, and the format of its numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::fabric {

// Everything up to and including <body>. The page refers to no other file.
std::string page_begin(std::string_view title);
std::string page_end();

std::string escaped(std::string_view text);  // for HTML

std::string short_number(double value);     // 1234567 -> "1.23M"
std::string grouped(std::uint64_t number);  // 1234567 -> "1,234,567"

}  // namespace weir::fabric
