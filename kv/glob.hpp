// Glob patterns as KEYS, SCAN, PSUBSCRIBE and CONFIG GET take them: * ? [a-z] [^a] and backslash.
#pragma once

#include <string_view>

namespace weir::kv {

enum class Case { exact, ignore };

// Bounded: runs in time linear in the text for each star, with no recursion a client could deepen.
bool glob_match(std::string_view pattern, std::string_view text, Case letters = Case::exact);

}  // namespace weir::kv
