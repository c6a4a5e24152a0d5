// What the kernel says of a TCP connection: the proof that nobody reads or writes it past us.
#pragma once

#include <cstdint>
#include <optional>

namespace weir::sockets {

struct KernelCounts {
  std::uint64_t written = 0;  // bytes that programs gave it: sent and still to be sent
  std::uint64_t read = 0;     // bytes that programs took: received ones without those in its queue
  bool established = false;
};

// Nothing: the kernel does not say, or bytes came in each time it was asked.
std::optional<KernelCounts> kernel_counts(int fd);

}  // namespace weir::sockets
