// The PFC watchdog as SONiC configures it. A queue is in a storm if PFC stops it and it holds packets and
// sends none for the detection time. Then its packets are dropped (or sent despite the pause) until no XOFF
// has come for the restoration time.
#pragma once

#include <cstdint>
#include <vector>

#include "fabric/sim/network_state.hpp"
#include "fabric/sim/pfc.hpp"

namespace weir::fabric::sim {

class PfcWatchdogHost {
 public:
  // Drops all packets of the queue.
  virtual void drop_queue(std::uint32_t port, unsigned priority) = 0;

 protected:
  ~PfcWatchdogHost() = default;
};

class PfcWatchdog {
 public:
  PfcWatchdog(NetworkState& net, Pfc& pfc, PfcWatchdogHost& host) : net_(net), pfc_(pfc), host_(host) {}

  // Looks at all queues now, and orders the next look.
  void poll();

 private:
  struct Watched {
    std::uint64_t sent = 0;
    std::uint32_t xoff = 0;
    Ticks stuck_since = no_time;
    Ticks quiet_since = no_time;
    bool storming = false;
  };

  void watch(std::uint32_t port, unsigned priority, Watched& watched);

  NetworkState& net_;
  Pfc& pfc_;
  PfcWatchdogHost& host_;
  std::vector<Watched> watched_;  // port * 8 + priority
};

}  // namespace weir::fabric::sim
