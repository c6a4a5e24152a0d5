// Keyspace notifications: subscribers hear what happens to keys.
//
// notify-keyspace-events selects the events and the channels: __keyspace@DB__:KEY, with the event as its
// message (K), and __keyevent@DB__:EVENT, with the key (E). Threading: the server's one thread.
#pragma once

#include <string_view>

#include "kv/command/key_events.hpp"
#include "kv/settings/event_classes.hpp"

namespace weir::kv {

class PubSub;

class Notifications {
 public:
  explicit Notifications(PubSub& pubsub) : pubsub_(pubsub) {}

  void choose(EventClasses classes) { classes_ = classes; }
  bool any() const { return classes_.any(); }
  bool wants(char kind) const { return classes_.has(kind); }
  void tell(int db, KeyEvent event, std::string_view key);

 private:
  PubSub& pubsub_;
  EventClasses classes_;
};

}  // namespace weir::kv
