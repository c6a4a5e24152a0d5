// The interface to the module weir_telemetry.so, the only part that uses gRPC and protobuf: notifications go
// in, and notifications come out. It is plain C, because the two are linked separately
// (docs/decisions/0009-modules-for-mpi-and-grpc.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cli/weir/telemetry/notification.hpp"

namespace weir::command {

struct TelemetryModule {
  // The sender's side. Call from one thread at a time; only the functions that say so wait.
  void* (*open)(const char* collector, std::uint64_t queue_bytes);
  // Queues a copy. If the queue is full, waits while a collector takes from it, and drops the
  // oldest while none does.
  void (*push)(void* publisher, const TelemetryNotification* notification);
  // Waits at most so long for what is still queued, then frees the publisher.
  TelemetryCounts (*close)(void* publisher, std::uint32_t wait_ms);

  // The collector's side. Returns null, with the reason in `trouble`, if it cannot listen. `receive` is
  // called from gRPC's threads, several at a time. If it returns true, the notification is acknowledged.
  // Otherwise the stream ends with an error and the sender tries again.
  void* (*listen)(const char* address, void* self, bool (*receive)(void* self, const TelemetryNotification*),
                  char* bound, char* trouble, std::size_t room);
  void (*stop_listening)(void* receiver);
};

inline constexpr const char* telemetry_module_file = "weir_telemetry.so";
inline constexpr const char* telemetry_module_function = "weir_telemetry_module";
using TelemetryModuleFunction = const TelemetryModule*();

}  // namespace weir::command
