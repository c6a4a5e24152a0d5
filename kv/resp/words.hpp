// Splits a line into words as redis.conf and inline commands quote them: "..." with the escapes
// \n \r \t \b \a \xHH, '...' with \' only. A closing quote must be followed by a space or the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::kv {

// nullopt: unbalanced quotes.
std::optional<std::vector<std::string>> split_words(std::string_view line);

// The reverse: a word in double quotes, with escapes for unprintable characters.
std::string quoted(std::string_view word);

}  // namespace weir::kv
