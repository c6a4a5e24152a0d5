// The events that keyspace notifications report for commands: "lpush", in the class of lists.
#pragma once

#include <string_view>

namespace weir::kv {

struct KeyEvent {
  char kind = 0;  // the class's letter in notify-keyspace-events; 0: no event
  std::string_view name = {};
};

// Whether the event may leave a collection empty; then the key is deleted, which is an event, too.
constexpr bool may_empty(KeyEvent event) {
  return event.kind == 'l' || event.kind == 's' || event.kind == 'h' || event.kind == 'z';
}

inline constexpr KeyEvent key_deleted{'g', "del"};
inline constexpr KeyEvent expiry_set{'g', "expire"};
inline constexpr KeyEvent expiry_removed{'g', "persist"};

}  // namespace weir::kv
