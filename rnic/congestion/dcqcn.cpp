#include "rnic/congestion/dcqcn.hpp"

namespace weir::rnic::congestion {

// Section 3.1: on a CNP, RT = RC, RC = RC (1 - alpha/2), alpha = (1 - g) alpha + g; timer, byte
// counter, T and BC restart.
void ReactionPoint::on_cnp(const DcqcnParameters& parameters, Time now, double line_rate) {
  if (!limited_) {
    limited_ = true;
    current_ = target_ = line_rate;
    alpha_ = parameters.initial_alpha;
  } else {
    advance(parameters, now, line_rate);
  }
  if (now >= decrease_allowed_) {
    // Without clamping, a second CNP before the first recovery step leaves the target at the
    // rate before the first CNP.
    if (parameters.lower_target_always || timer_steps_ + byte_steps_ > 0 || target_ == current_)
      target_ = current_;
    current_ = std::max(current_ * (1 - std::min(alpha_ / 2, parameters.largest_decrease)),
                        std::min(on_line(parameters, parameters.minimum_rate, line_rate), line_rate));
    decrease_allowed_ = now + parameters.decrease_interval;
    timer_steps_ = byte_steps_ = 0;
    bytes_ = 0;
    increase_due_ = now + parameters.increase_interval;
  }
  alpha_ = (1 - parameters.g) * alpha_ + parameters.g;
  alpha_due_ = now + parameters.alpha_interval;
}

void ReactionPoint::count_bytes(const DcqcnParameters& parameters, double line_rate) {
  bytes_ -= parameters.increase_bytes;
  ++byte_steps_;
  increase(parameters, line_rate);
}

void ReactionPoint::work_off_timers(const DcqcnParameters& parameters, Time now, double line_rate) {
  while (std::min(alpha_due_, increase_due_) <= now) {
    if (alpha_due_ <= increase_due_) {
      alpha_ *= 1 - parameters.g;
      alpha_due_ += std::max<Time>(parameters.alpha_interval, 1);
    } else {
      ++timer_steps_;
      increase_due_ += std::max<Time>(parameters.increase_interval, 1);
      increase(parameters, line_rate);
    }
  }
}

// Section 3.1: fast recovery while both counters are below F, hyper increase once both are above it,
// otherwise additive increase.
void ReactionPoint::increase(const DcqcnParameters& parameters, double line_rate) {
  const auto most = std::max(timer_steps_, byte_steps_);
  const auto least = parameters.increase_bytes == 0 ? timer_steps_ : std::min(timer_steps_, byte_steps_);
  if (least > parameters.fast_recovery_steps)
    target_ +=
        (least - parameters.fast_recovery_steps) * on_line(parameters, parameters.hyper_increase, line_rate);
  else if (most >= parameters.fast_recovery_steps)
    target_ += on_line(parameters, parameters.additive_increase, line_rate);
  target_ = std::min(target_, line_rate);
  current_ = std::min((target_ + current_) / 2, line_rate);
}

}  // namespace weir::rnic::congestion
