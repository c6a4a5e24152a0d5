// Queue pair 1 of this host's addresses, for the connection manager: datagrams of management to and from
// other hosts. The implementation is PacketNetwork's; librdmacm.so.1 calls it through this interface.
//
// Threading: all functions from any thread; the handler runs on the link's thread, one call at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "link/same_host.hpp"

namespace weir::verbs {

using GidBytes = std::array<std::uint8_t, 16>;

class ManagementPort {
 public:
  // `source`: where it came from; `destination`: the address of ours that it was sent to.
  using Handler = std::function<void(const GidBytes& source, const GidBytes& destination,
                                     std::span<const std::byte> mad)>;

  // Packets come from now on; once it has succeeded it does so at once. The error is fit to print.
  virtual link::Result<void> open_port() = 0;
  // Before open_port().
  virtual void on_management(Handler handler) = 0;
  // May be lost on its way.
  virtual void send_management(const GidBytes& source, const GidBytes& destination,
                               std::span<const std::byte> mad) = 0;
  // Whether that address is reached by packets at all: not ours, of a kind they carry, and not switched off.
  virtual bool leads_to(const GidBytes& destination) = 0;
  // The largest path MTU of packets from there (an ibv_mtu).
  virtual std::uint8_t path_mtu(const GidBytes& source) = 0;
  // The interface with that link-local address of ours, without which its peers' addresses say nothing; 0:
  // another kind of address.
  virtual std::uint32_t scope_of(const GidBytes& own) = 0;

 protected:
  ~ManagementPort() = default;
};

}  // namespace weir::verbs
