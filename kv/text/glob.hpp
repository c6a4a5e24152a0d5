// Glob patterns of KEYS, SCAN, PSUBSCRIBE and CONFIG GET: * ? [a-z] [^a] and backslash.
#pragma once

#include <string_view>

namespace weir::kv {

enum class Case { exact, ignore };

// Bounded: for each star the time is linear in the text, and no recursion depends on the pattern.
bool glob_match(std::string_view pattern, std::string_view text, Case letters = Case::exact);

}  // namespace weir::kv
