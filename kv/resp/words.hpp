// Splits a line into words as redis.conf and inline commands quote them: "..." with \n \r \t \b \a \xHH
// escapes,
// '...' with \' only. A closing quote must be followed by a space or the end.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::kv {

// nullopt: unbalanced quotes.
std::optional<std::vector<std::string>> split_words(std::string_view line);

}  // namespace weir::kv
