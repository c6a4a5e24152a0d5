// One line for the server's log.
#pragma once

#include <functional>
#include <string_view>

namespace weir::kv {

enum class LogLevel : int { debug, verbose, notice, warning };

using LogLine = std::function<void(LogLevel, std::string_view)>;

}  // namespace weir::kv
