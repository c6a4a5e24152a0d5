// What both sides of a queue pair and its life cycle share: its identity, configuration and state.
#pragma once

#include <atomic>
#include <cstdint>

#include "rnic/nic_parts.hpp"
#include "rnic/queue_pair/completion_signal.hpp"
#include "rnic/queue_pair/qp_config.hpp"

namespace weir::rnic {

class QueuePair;
class Tracer;
namespace weak {
struct Weak;
}

// A queue pair's place in the CQ that it completes into.
struct CqPlace {
  CqContext* cq = nullptr;  // nullptr: has no CQ
  std::uint32_t line = 0;
  std::atomic<int>* on_packets = nullptr;  // CompletionQueue::on_packets, or Adapter::xrc_on_packets()
};

// What the parts of a queue pair ask of the whole. Called under its send lock.
class QpWhole {
 public:
  // Completes as flushed everything not yet executed and every posted receive.
  virtual void enter_error() = 0;
  // The queue pair waits for something that only a retry will show: Adapter::note_parked().
  virtual void note_parked() = 0;
  // QueuePair::resume() is to be called at about this time.
  virtual void resume_at(std::uint64_t deadline_ns) = 0;
  // Adapter::wait_for_initiators().
  virtual void wait_for_initiators() const = 0;

 protected:
  ~QpWhole() = default;
};

struct QpCommon {
  NicParts nic;
  QpWhole& whole;
  QueuePair& queue_pair;  // the same, for interfaces that take a QueuePair
  Qpn qpn;
  QpConfig config;
  QpContext* ctx;  // nullptr: there was no room for it; then nothing else here is used
  QpCounters& counters;
  Tracer* tracer;    // nullptr: tracing is off
  weak::Weak* weak;  // nullptr: requests are executed at once, in order
  CqPlace sends{}, receives{};
  QpAttributes attributes{};  // under the send lock

  QpState state() const { return static_cast<QpState>(ctx->state.load(std::memory_order_acquire)); }
  // A completion is there: marks it, and wakes a sleeper on that CQ.
  void raise(const CqPlace&, Solicited) const;
  // An initiator that waits for what we have just done may try again.
  void kick_initiator_if_parked() const;
};

}  // namespace weir::rnic
