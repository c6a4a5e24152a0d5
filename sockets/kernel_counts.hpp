// The kernel's own counts for a TCP connection: they prove that nobody reads or writes it behind our back.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::sockets {

struct KernelCounts {
  std::uint64_t written = 0;  // bytes that programs wrote: sent or still to be sent
  // The same, counted otherwise: acknowledged or still to be; one more at the end that connected, for its
  // SYN.
  std::uint64_t acknowledged = 0;
  std::uint64_t read = 0;  // bytes that programs read: received less those still queued
  bool established = false;

  // `written` is too large for good once a queue of this host has dropped a segment: the kernel counts it as
  // sent, and not as retransmitted when it is sent again (tcp_write_xmit() and __tcp_transmit_skb() of
  // Linux).
  bool agree_on_written(std::uint64_t bytes, bool accepted) const {
    return written == bytes || acknowledged == bytes + (accepted ? 0 : 1);
  }
};

// nullopt: the kernel does not say, or more bytes came in during every try.
std::optional<KernelCounts> kernel_counts(int fd);

}  // namespace weir::sockets
