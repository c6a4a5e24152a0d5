// An open loop: requests are due at fixed times, whether the server keeps up or not.
//
// A closed loop sends the next request when the last one is answered: a server that stands still for seconds
// costs it one slow request a connection, and the thousand that users would have sent meanwhile are missing
// from its percentiles (coordinated omission). Here each request has its time, and its latency counts from
// that time. One that finds every connection full waits in the schedule, which is a count and takes no
// memory.
//
// Lateness is what the generator itself adds: from when a request was due and had a place on a connection to
// when it was sent. Time is passed in; no clock, no I/O. Threading: one thread.
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

  // Request n is due at start + n / per_second; there are `requests`, less those that would be due at `end`
  // or after. per_second is above 0.
  OpenLoop(Time start, Time end, double per_second, std::uint64_t requests)
      : start_(start), interval_ns_(1e9 / per_second), requests_(requests) {
    if (end != Time::max()) requests_ = std::min(requests_, due_before(end));
  }

  bool all_taken() const { return taken_ == requests_ && given_back_.empty(); }
  // Requests due at `now` and not taken.
  std::uint64_t due(Time now) const {
    return std::min(requests_, due_before(now + std::chrono::nanoseconds(1))) - taken_ + given_back_.size();
  }
  // When the next one is due.
  Time next() const { return given_back_.empty() ? due_at(taken_) : given_back_.front(); }

  // Takes the oldest, to be sent now, and says when it was due. There is one due.
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
  // One that was taken has to be sent again; it is due since then.
  void give_back(Time due) { given_back_.push_back(due); }

  // Requests are due and every connection is full: waiting is the server's doing from now on,
  void no_room() { full_ = true; }
  bool waits_for_room() const { return full_; }
  // until a place becomes free.
  void room(Time now) {
    if (!full_) return;
    full_ = false;
    room_since_ = now;
  }

  // Gives up what is due and was never sent: it counts with the time it has waited until now. Says how many.
  std::uint64_t abandon(Time now, LatencyHistogram& latency) {
    constexpr std::uint64_t steps = 4096;  // bounds the work; they are evenly spaced
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
  // How many have a time before that one.
  std::uint64_t due_before(Time time) const {
    if (time <= start_) return 0;
    const double elapsed_ns = static_cast<double>((time - start_).count());
    auto n = static_cast<std::uint64_t>(elapsed_ns / interval_ns_);
    // The division is a guess that rounding may put one off.
    while (n > 0 && due_at(n - 1) >= time) --n;
    while (due_at(n) < time) ++n;
    return n;
  }

  Time start_;
  double interval_ns_;
  std::uint64_t requests_;
  std::uint64_t taken_ = 0;
  std::deque<Time> given_back_;  // at most as many as are under way
  bool full_ = false;
  Time room_since_ = Time::min();
  LatencyHistogram lateness_;
};

}  // namespace weir::benchmark
