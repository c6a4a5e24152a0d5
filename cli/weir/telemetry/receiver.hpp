// The collector's side of dial-out telemetry: receives Publish streams, hands on their notifications, and
// acknowledges each by its timestamp after `receive` has taken it.
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

  // Returns the address with its port; empty: it cannot listen.
  std::string listen(const std::string& address);

 private:
  class Service;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::command
