// The HTML page that a report is, and how numbers stand in it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::fabric {

// Up to and with <body>. One file that refers to no other.
std::string page_begin(std::string_view title);
std::string page_end();

std::string escaped(std::string_view text);  // for HTML

std::string short_number(double value);     // 1234567 -> "1.23M"
std::string grouped(std::uint64_t number);  // 1234567 -> "1,234,567"

}  // namespace weir::fabric
