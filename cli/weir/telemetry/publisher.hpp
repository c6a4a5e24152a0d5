// The sender of dial-out telemetry: a bounded queue of notifications, and a thread that keeps a Publish
// stream to the collector, reconnects when it breaks, and repeats what was not acknowledged. Each
// notification arrives at least once, in order.
//
// A collector acknowledges with PublishResponse.timestamp. One that never does (SONiC's "unidirectional") is
// trusted: what was written to it counts as delivered when room is needed or the stream ends well.
#pragma once

#include <gnmi.pb.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "cli/weir/telemetry/notification.hpp"

namespace grpc {
class Channel;
}

namespace weir::command {

class Publisher {
 public:
  Publisher(std::string collector, std::uint64_t queue_bytes);
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  void push(const TelemetryNotification& notification);
  TelemetryCounts close(std::chrono::milliseconds wait);

 private:
  using Clock = std::chrono::steady_clock;
  struct Queued {
    gnmi::SubscribeResponse message;
    std::uint64_t bytes;
  };
  class Stream;

  void keep_connected();
  void forget_first(bool delivered);
  void acknowledged(std::int64_t timestamp);

  const std::string collector_;
  const std::uint64_t most_bytes_;
  std::string sender_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<Queued> queue_;   // not acknowledged yet, oldest first
  std::uint64_t first_ = 0;    // number of queue_.front(), counted from the first push
  std::uint64_t written_ = 0;  // notifications before this number were given to gRPC on this stream
  std::uint64_t bytes_ = 0;
  bool streaming_ = false;     // a collector is connected
  bool acknowledges_ = false;  // it has acknowledged something
  bool closing_ = false;
  bool ended_ = false;        // the thread has ended
  Stream* stream_ = nullptr;  // non-null while streaming_
  Clock::time_point give_up_at_ = Clock::time_point::max();
  TelemetryCounts counts_{};
  std::thread thread_;
};

}  // namespace weir::command
