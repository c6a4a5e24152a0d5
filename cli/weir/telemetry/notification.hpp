// What telemetry carries, in plain C: the module weir_telemetry.so and its caller are linked separately.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::command {

struct TelemetryValue {
  const char* path;  // elements, separated by '/'
  const char* json;
};

struct TelemetryNotification {
  const char* sender;      // the process that streams; the timestamps of one sender grow
  std::int64_t timestamp;  // ns since the epoch
  const char* device;
  const TelemetryValue* values;
  std::size_t count;
};

struct TelemetryCounts {
  std::uint64_t pushed;
  std::uint64_t delivered;  // acknowledged, or written to a collector that acknowledges nothing
  std::uint64_t dropped;
  std::uint64_t connections;
};

}  // namespace weir::command
