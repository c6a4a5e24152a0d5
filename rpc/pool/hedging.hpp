// When a call that is slow is made a second time, at another server, and how many such calls there may be.
// Pure.
//
// A hedge cuts the tail of the latencies: one server that pauses delays no call by more than `after`. It is
// load that the servers would not have had, so tokens limit it, as in gRPC's A6: a call that a server failed
// costs one and a call that went well brings a share of one; with half of them gone no hedge is made. Beyond
// A6 a hedge costs a token, too: where all servers are slow rather than failing, hedges must not double what
// makes them slow.
#pragma once

#include <algorithm>
#include <chrono>

namespace weir::rpc {

struct HedgingOptions {
  // Without an answer for so long, the call is made at one more server, and the first answer counts. Only
  // calls that may run twice (idempotent), and that lend no memory for an attachment. 0: never.
  // CallOptions::hedge_after is for one call.
  std::chrono::microseconds after{0};
  int attempts = 2;          // at once, the first included
  double max_tokens = 50;    // a burst of hedges may use half of them
  double token_ratio = 0.1;  // a call brings so much: about this share of the calls may be hedged
};

// Threading: one thread.
class HedgingTokens {
 public:
  explicit HedgingTokens(const HedgingOptions& options)
      : most_(std::max(options.max_tokens, 0.0)), ratio_(options.token_ratio), left_(most_) {}

  void ended_well() { left_ = std::min(most_, left_ + ratio_); }
  void failed() { left_ = std::max(0.0, left_ - 1); }
  // For one hedge; false: none may be made.
  bool take() {
    if (left_ <= most_ / 2) return false;
    left_ = std::max(0.0, left_ - 1);
    return true;
  }

 private:
  double most_, ratio_, left_;
};

}  // namespace weir::rpc
