#include "kv/clients/notifications.hpp"

#include <string>

#include "kv/clients/pubsub.hpp"

namespace weir::kv {

void Notifications::tell(int db, KeyEvent event, std::string_view key) {
  if (event.kind == 0 || !wants(event.kind)) return;
  const std::string number = std::to_string(db);
  if (wants('K')) {
    pubsub_.publish(std::string("__keyspace@").append(number).append("__:").append(key), event.name);
  }
  if (wants('E')) {
    pubsub_.publish(std::string("__keyevent@").append(number).append("__:").append(event.name), key);
  }
}

}  // namespace weir::kv
