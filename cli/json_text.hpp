// JSON strings, for what the programs write. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace weir {

// In quotes. Names of processes and files are any bytes: those that are no UTF-8 become U+FFFD, so that
// whoever reads the JSON can.
std::string json_string(std::string_view text);

}  // namespace weir
