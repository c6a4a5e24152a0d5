// The kernel's own counts for a TCP connection: they prove that nobody reads or writes it behind our back.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::sockets {

struct KernelCounts {
  std::uint64_t written = 0;  // bytes that programs wrote: sent or still to be sent
  std::uint64_t read = 0;     // bytes that programs read: received less those still queued
  bool established = false;
};

// nullopt: the kernel does not say, or more bytes came in during every try.
std::optional<KernelCounts> kernel_counts(int fd);

}  // namespace weir::sockets
