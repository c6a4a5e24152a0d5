// The ports on which this process listens by rdma_cm for ends on other hosts, for as long as it
// lives. Service thread only.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <map>

#include "sockets/far_address.hpp"

namespace weir::sockets {

class FarListeners {
 public:
  // Listens there if it does not yet. Port 0 is a port of our own, the same each time. Returns the port; 0:
  // another process listens there, or there are too many listeners.
  std::uint32_t listen(rdma_event_channel* channel, const FarAddress& at);
  // Our own port for `address`; 0: none.
  std::uint32_t own_port(const std::array<std::uint8_t, 16>& address) const;

 private:
  static constexpr std::size_t most = 64;

  std::map<FarAddress, rdma_cm_id*> listeners_;
  std::map<std::array<std::uint8_t, 16>, std::uint32_t> own_ports_;
};

}  // namespace weir::sockets
