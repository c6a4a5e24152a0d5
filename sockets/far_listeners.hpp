// The port numbers on which this process listens by rdma_cm for ends on other hosts, as long as it lives.
// Service thread alone.
#pragma once

#include <rdma/rdma_cma.h>

#include <array>
#include <cstdint>
#include <map>

#include "sockets/far_address.hpp"

namespace weir::sockets {

class FarListeners {
 public:
  // Listens there if it does not yet; port 0: on a number of its own, the same each time. The number; 0:
  // another process has it, or there are too many.
  std::uint32_t listen(rdma_event_channel* channel, const FarAddress& at);
  // The number of its own for `address`; 0: none.
  std::uint32_t own_port(const std::array<std::uint8_t, 16>& address) const;

 private:
  static constexpr std::size_t most = 64;

  std::map<FarAddress, rdma_cm_id*> listeners_;
  std::map<std::array<std::uint8_t, 16>, std::uint32_t> own_ports_;
};

}  // namespace weir::sockets
