// DCQCN, the congestion control of RoCEv2: the reaction point (sender) and the notification point (receiver).
// "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, sections 3.1 and 5; the names of the
// variables (RC, RT, alpha, T, BC, F) are the paper's.
//
// Pure state: an event and the time go in, the new rate comes out; no clock, no timer, no allocation. The
// timers of the paper are due times that advance() works off in order, so whoever drives this needs no timer
// interrupt: it calls advance() before it uses the rate, and next_due() says when the rate would change by
// itself.
//
// Time is in whatever unit the caller counts, the same in `now` and in the parameters. Rates are in bit/s.
// One thread at a time for each object.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::rnic::congestion {

using Time = std::uint64_t;
constexpr Time never = ~Time{0};

struct DcqcnParameters {
  double g = 1.0 / 256;             // weight of new information in alpha
  double initial_alpha = 1;         // what the first CNP of a flow meets
  double additive_increase = 40e6;  // R_AI, bit/s
  double hyper_increase = 200e6;    // R_HAI, bit/s; the paper names no value
  double minimum_rate = 10e6;       // bit/s
  // The line speed that the three rates above are meant for, bit/s: on another they are scaled with it. 0:
  // they are the same on every line.
  double reference_rate = 0;
  double largest_decrease = 0.5;        // one CNP never takes more than this part of the rate
  Time alpha_interval = 55'000;         // without a CNP for so long alpha decays
  Time increase_interval = 55'000;      // the timer T of rate increase
  Time decrease_interval = 0;           // two decreases are at least so far apart; 0: each CNP counts
  Time notification_interval = 50'000;  // the notification point sends at most one CNP a flow in this time
  std::uint64_t increase_bytes = 10'000'000;  // the byte counter BC of rate increase; 0: none, T alone counts
  std::uint32_t fast_recovery_steps = 5;      // F
  bool lower_target_always = true;            // RT=RC also while still recovering (NICs: clamp_tgt_rate)
};

// What a rate of the parameters is on this line.
inline double on_line(const DcqcnParameters& parameters, double rate, double line_rate) {
  return parameters.reference_rate > 0 ? rate * line_rate / parameters.reference_rate : rate;
}

// The sender's half. Until the first CNP it costs nothing and sends at line rate.
class ReactionPoint {
 public:
  ReactionPoint(double line_rate = 0) : current_(line_rate), target_(line_rate) {}

  double rate() const { return current_; }
  double target() const { return target_; }
  double alpha() const { return alpha_; }
  bool limited() const { return limited_; }
  // When advance() would change something; never before the first CNP.
  Time next_due() const { return limited_ ? std::min(alpha_due_, increase_due_) : never; }

  void on_cnp(const DcqcnParameters& parameters, Time now, double line_rate);
  // `bytes` left for the wire: the byte counter.
  void on_sent(const DcqcnParameters& parameters, std::uint64_t bytes, double line_rate) {
    if (!limited_ || parameters.increase_bytes == 0) return;
    bytes_ += bytes;
    if (bytes_ >= parameters.increase_bytes) count_bytes(parameters, line_rate);
  }
  // Works off every timer due at or before `now`.
  void advance(const DcqcnParameters& parameters, Time now, double line_rate) {
    if (now >= next_due()) work_off_timers(parameters, now, line_rate);
  }

 private:
  void count_bytes(const DcqcnParameters& parameters, double line_rate);
  void work_off_timers(const DcqcnParameters& parameters, Time now, double line_rate);
  void increase(const DcqcnParameters& parameters, double line_rate);

  double current_;    // RC
  double target_;     // RT
  double alpha_ = 0;  // meaningful once limited_
  Time alpha_due_ = never;
  Time increase_due_ = never;
  Time decrease_allowed_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t timer_steps_ = 0;  // T
  std::uint32_t byte_steps_ = 0;   // BC
  bool limited_ = false;
};

// The receiver's half: one CNP a flow and interval, however many marked packets arrive.
class NotificationPoint {
 public:
  // A packet with CE arrived. True: send a CNP now.
  bool on_marked(const DcqcnParameters& parameters, Time now) {
    if (now < allowed_) return false;
    allowed_ = now + parameters.notification_interval;
    return true;
  }

 private:
  Time allowed_ = 0;
};

}  // namespace weir::rnic::congestion
