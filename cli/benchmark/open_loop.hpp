// An open loop: requests are due at fixed times, whether or not the server keeps up.
//
// A closed loop sends a request only after the last one was answered. If the server stops for
// seconds, that costs one slow request per connection, and the thousand that users would have sent
// meanwhile are missing from the percentiles (coordinated omission). Here each request has its time,
// from which its latency counts. If every connection is full, a request waits in the schedule, which
// is a count and needs no memory.
//
// Lateness is the generator's own delay: from when a request was due and a connection had room to when it was
// sent. Time is passed in; no clock, no I/O. Threading: one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <utility>

#include "cli/benchmark/histogram.hpp"

namespace weir::benchmark {

class OpenLoop {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // Request n is due at start + n / per_second. There are `requests`, except those due at or after `end`.
  // per_second must be positive.
  OpenLoop(Time start, Time end, double per_second, std::uint64_t requests)
      : start_(start), interval_ns_(1e9 / per_second), requests_(requests) {
    if (end != Time::max()) requests_ = std::min(requests_, due_before(end));
  }

  bool all_taken() const { return taken_ == requests_ && given_back_.empty(); }
  // The number of requests due at `now` and not taken.
  std::uint64_t due(Time now) const {
    return std::min(requests_, due_before(now + std::chrono::nanoseconds(1))) - taken_ + given_back_.size();
  }
  // When the next request is due.
  Time next() const { return given_back_.empty() ? due_at(taken_) : given_back_.front(); }

  // Takes the oldest due request, to be sent now, and returns its due time. One must be due.
  Time take(Time now) {
    if (!given_back_.empty()) {
      const Time due = given_back_.front();
      given_back_.pop_front();
      return due;
    }
    const Time due = due_at(taken_++);
    lateness_.record(nanoseconds(now - std::max(due, room_since_)));
    return due;
  }
  // A request that was taken must be sent again; its due time stays.
  void give_back(Time due) { given_back_.push_back(due); }

  // Requests are due and every connection is full: from now on waiting is the server's delay,
  void no_room() { full_ = true; }
  bool waits_for_room() const { return full_; }
  // until a connection has room.
  void room(Time now) {
    if (!full_) return;
    full_ = false;
    room_since_ = now;
  }

  // Gives up due requests that were not sent: each counts with its waiting time so far. Returns how many.
  std::uint64_t abandon(Time now, LatencyHistogram& latency) {
    constexpr std::uint64_t steps = 4096;  // bounds the work; the samples are evenly spaced
    const std::uint64_t again = given_back_.size();
    for (const Time due : std::exchange(given_back_, {})) latency.record(nanoseconds(now - due));
    const std::uint64_t abandoned = due(now);
    for (std::uint64_t i = 0; i < steps; ++i) {
      const auto first = abandoned / steps * i + std::min(i, abandoned % steps);
      const auto count = abandoned / steps + (i < abandoned % steps ? 1 : 0);
      if (count) latency.record(nanoseconds(now - due_at(taken_ + first)), count);
    }
    requests_ = taken_;
    return abandoned + again;
  }

  const LatencyHistogram& lateness() const { return lateness_; }

 private:
  static std::uint64_t nanoseconds(std::chrono::nanoseconds duration) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration.count()));
  }
  Time due_at(std::uint64_t n) const {
    return start_ +
           std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(n) * interval_ns_));
  }
  // How many requests are due before that time.
  std::uint64_t due_before(Time time) const {
    if (time <= start_) return 0;
    const double elapsed_ns = static_cast<double>((time - start_).count());
    auto n = static_cast<std::uint64_t>(elapsed_ns / interval_ns_);
    // The quotient is a guess; rounding may put it off by one.
    while (n > 0 && due_at(n - 1) >= time) --n;
    while (due_at(n) < time) ++n;
    return n;
  }

  Time start_;
  double interval_ns_;
  std::uint64_t requests_;
  std::uint64_t taken_ = 0;
  std::deque<Time> given_back_;  // at most the number of requests under way
  bool full_ = false;
  Time room_since_ = Time::min();
  LatencyHistogram lateness_;
};

}  // namespace weir::benchmark
