// The seam to the module weir_telemetry.so, which alone knows gRPC and protobuf: notifications go in,
// notifications come out. Plain C, because the two are linked apart
// (docs/decisions/0009-modules-for-mpi-and-grpc.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cli/weir/telemetry/notification.hpp"

namespace weir::command {

struct TelemetryModule {
  // The sender's side. Calls from one thread at a time; nothing waits but where it says so.
  void* (*open)(const char* collector, std::uint64_t queue_bytes);
  // Takes a copy. Waits while the queue is full and a collector takes from it; drops the oldest while none
  // does.
  void (*push)(void* publisher, const TelemetryNotification* notification);
  // Waits up to so long for what is still queued, frees.
  TelemetryCounts (*close)(void* publisher, std::uint32_t wait_ms);

  // The collector's side. Null, and why, where it cannot listen. `receive` is called from gRPC's threads,
  // several at a time; only when it gives true is the notification acknowledged, else the stream ends with an
  // error and the sender tries again.
  void* (*listen)(const char* address, void* self, bool (*receive)(void* self, const TelemetryNotification*),
                  char* bound, char* trouble, std::size_t room);
  void (*stop_listening)(void* receiver);
};

inline constexpr const char* telemetry_module_file = "weir_telemetry.so";
inline constexpr const char* telemetry_module_function = "weir_telemetry_module";
using TelemetryModuleFunction = const TelemetryModule*();

}  // namespace weir::command
