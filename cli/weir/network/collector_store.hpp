// What a telemetry collector keeps: the last value of every counter, for Prometheus, and the last timestamp
// of each sender, so that a repeated notification counts once. Thread-safe. The number of series and their
// bytes are limited: values beyond a limit are counted, not kept.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "cli/weir/telemetry/telemetry_module.hpp"

namespace weir::command {

class CollectorStore {
 public:
  explicit CollectorStore(std::size_t most_series = 1'000'000, std::size_t most_senders = 1024,
                          std::size_t most_bytes = std::size_t{256} << 20)
      : most_series_(most_series), most_senders_(most_senders), most_bytes_(most_bytes) {}

  // Whether it is new: a sender's timestamps grow. A notification without a sender always is.
  bool is_new(const TelemetryNotification& notification);
  void keep(const TelemetryNotification& notification);

  // In Prometheus's text exposition format, version 0.0.4.
  std::string metrics() const;

 private:
  using Labels = std::string;  // device="leaf1",port="Ethernet0",queue="3"
  void keep_value(const std::string& metric, const Labels& labels, double value);
  class Walk;

  const std::size_t most_series_, most_senders_, most_bytes_;
  mutable std::mutex mutex_;                                  // guards all below
  std::map<std::string, std::int64_t, std::less<>> last_of_;  // by sender
  std::map<std::string, std::map<Labels, double>> series_;    // by metric
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;  // about what series_ uses
  std::uint64_t notifications_ = 0, repeated_ = 0, not_understood_ = 0, refused_ = 0;
};

// One line for each value, as `weir collector` writes it:
// {"timestamp":...,"device":...,"path":...,"values":...}
std::string json_lines(const TelemetryNotification& notification);

}  // namespace weir::command
