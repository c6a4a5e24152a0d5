// The collector's side of dial-out telemetry: takes Publish streams, hands on their notifications, and
// acknowledges each by its timestamp once it is taken.
#pragma once

#include <memory>
#include <string>

#include "cli/weir/telemetry/notification.hpp"

namespace weir::command {

class Receiver {
 public:
  using Receive = bool (*)(void* self, const TelemetryNotification*);

  Receiver(void* self, Receive receive);
  ~Receiver();
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  // Where it listens, port included, or nothing.
  std::string listen(const std::string& address);

 private:
  class Service;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::command
