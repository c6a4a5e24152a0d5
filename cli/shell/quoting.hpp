// Splits and quotes words of a command line as redis-cli does.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::shell {

// "..." with \n, \r, \t, \b, \a, \\, \" and \xHH; '...' with \'. nullopt: a quote is not closed, or text
// follows it.
std::optional<std::vector<std::string>> split_words(std::string_view line);

// "text" with escapes for everything except printable ASCII.
std::string quoted(std::string_view text);

// A JSON string; bytes from 0x80 on stay as they are (UTF-8).
std::string json_quoted(std::string_view text);

bool same_word(std::string_view a, std::string_view b);  // ignoring case

}  // namespace weir::shell
