// What keyspace notifications say that a command did to a key: "lpush", of the class of lists.
#pragma once

#include <string_view>

namespace weir::kv {

struct Command;

struct KeyEvent {
  char kind = 0;  // the class, as notify-keyspace-events names it; 0: no event
  std::string_view name = {};
};

// What a command does to the key it is about. A command that does something else to a key, or something to
// several keys, says so itself.
KeyEvent usual_event(const Command& command);

// Whether the event is one that may leave a collection empty: its key then goes, which is an event, too.
constexpr bool may_empty(KeyEvent event) {
  return event.kind == 'l' || event.kind == 's' || event.kind == 'h' || event.kind == 'z';
}

inline constexpr KeyEvent key_deleted{'g', "del"};
inline constexpr KeyEvent expiry_set{'g', "expire"};
inline constexpr KeyEvent expiry_removed{'g', "persist"};

}  // namespace weir::kv
