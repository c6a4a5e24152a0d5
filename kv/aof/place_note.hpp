// The line with which a log ends if its server ended as planned: the place in the history of what the log
// holds. Behind it a later run appends, so it counts only as the last line. Redis skips it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kv/core/history.hpp"

namespace weir::kv::aof {

// With its line end.
std::string place_note(const repl::History& history);
// Of the line without its end; nullopt: it is another line.
std::optional<repl::PlaceInHistory> read_place_note(std::string_view line);

}  // namespace weir::kv::aof
