// What both sides of a queue pair and its life go by: who it is, how it was made, where it stands.
#pragma once

#include <cstdint>

#include "rnic/nic_parts.hpp"
#include "rnic/queue_pair/completion_signal.hpp"
#include "rnic/queue_pair/qp_config.hpp"

namespace weir::rnic {

class QueuePair;
class Tracer;

// A queue pair's place in the CQ that it completes into.
struct CqPlace {
  CqContext* cq = nullptr;  // nullptr: it completes nowhere
  std::uint32_t line = 0;
};

struct QpCommon {
  NicParts nic;
  QueuePair& whole;  // for events, and for those who trace
  Qpn qpn;
  QpConfig config;
  QpContext* ctx;  // nullptr: there was no room for it, and nothing else here is used
  QpCounters& counters;
  Tracer* tracer;  // nullptr: nobody traces
  CqPlace sends{}, receives{};

  QpState state() const { return static_cast<QpState>(ctx->state.load(std::memory_order_acquire)); }
  // A completion is there: marks it, and wakes whoever sleeps on that CQ.
  void raise(const CqPlace&, Solicited) const;
  // An initiator that waits for what we have just done may try again.
  void kick_initiator_if_parked() const;
};

}  // namespace weir::rnic
