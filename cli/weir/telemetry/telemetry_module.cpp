// The functions that weir_telemetry.so exports.
#include "cli/weir/telemetry/telemetry_module.hpp"

#include <cstdio>

#include "cli/weir/telemetry/publisher.hpp"
#include "cli/weir/telemetry/receiver.hpp"

namespace weir::command {
namespace {

void* open(const char* collector, std::uint64_t queue_bytes) { return new Publisher(collector, queue_bytes); }

void push(void* publisher, const TelemetryNotification* notification) {
  static_cast<Publisher*>(publisher)->push(*notification);
}

TelemetryCounts close(void* publisher, std::uint32_t wait_ms) {
  const std::unique_ptr<Publisher> owned(static_cast<Publisher*>(publisher));
  return owned->close(std::chrono::milliseconds(wait_ms));
}

void* listen(const char* address, void* self, Receiver::Receive receive, char* bound, char* trouble,
             std::size_t room) {
  auto receiver = std::make_unique<Receiver>(self, receive);
  const std::string where = receiver->listen(address);
  if (where.empty()) {
    std::snprintf(trouble, room, "cannot listen on %s; is the port taken, or the address not this machine's?",
                  address);
    return nullptr;
  }
  std::snprintf(bound, room, "%s", where.c_str());
  return receiver.release();
}

void stop_listening(void* receiver) { delete static_cast<Receiver*>(receiver); }

constexpr TelemetryModule module{open, push, close, listen, stop_listening};

}  // namespace

extern "C" [[gnu::visibility("default")]] const TelemetryModule* weir_telemetry_module() { return &module; }

}  // namespace weir::command
